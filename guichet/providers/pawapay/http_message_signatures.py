"""HTTP message signatures (RFC 9421) as pawaPay uses them: signing our requests, verifying its callbacks.

Source: docs/providers/pawapay.md, "Signatures". RFC 9421 encodes an ECDSA signature as r||s, both of pawaPay's samples
encode it as DER. We sign as the samples do, unless a setting says otherwise, and accept both.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

from guichet.clock import SECOND, Instant, iso
from guichet.providers.base import Callback
from guichet.providers.shared.fields import header

#: How an ECDSA signature becomes bytes.
Encoding = Literal["der", "raw"]

PublicKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey

#: Seconds that a signature of ours is valid, and one of theirs that does not say.
_LIFETIME: Final = 60
#: Seconds. Clocks differ, and a callback may wait in a queue.
_TOLERANCE: Final = 300
_SIGNATURE_INPUT: Final = re.compile(r'\s*([a-z0-9-]+)=(\((?:"[^"]+"\s*)*\)[^,]*)')
_SIGNATURE: Final = re.compile(r"\s*([a-z0-9-]+)=:([A-Za-z0-9+/=]+):")
_COVERED: Final = re.compile(r'"([^"]+)"')
_PARAMETER: Final = re.compile(r';(\w+)=(?:"([^"]*)"|(\d+))')
#: What a signature must cover to prove anything about a callback.
_REQUIRED: Final = frozenset({"@method", "@path", "content-digest"})
_DIGESTS: Final = {"sha-512": hashlib.sha512, "sha-256": hashlib.sha256}


def private_key(pem: str) -> ec.EllipticCurvePrivateKey:
    """Raises ValueError for anything but an unencrypted P-256 key in PEM."""
    key = serialization.load_pem_private_key(_pem(pem), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError("the signing key must be an EC key on P-256")  # noqa: TRY004  the setting is wrong, not the call
    return key


def public_key(pem: str) -> PublicKey:
    """Raises ValueError for anything but an EC or RSA public key in PEM."""
    key = serialization.load_pem_public_key(_pem(pem))
    if not isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey):
        raise ValueError("the public key must be an EC or RSA key")  # noqa: TRY004
    return key


def _pem(text: str) -> bytes:
    """Environment variables often hold a PEM on one line, with its line ends written as `\\n`."""
    return text.replace("\\n", "\n").encode()


def sign(
    key: ec.EllipticCurvePrivateKey, *, key_id: str, url: str, body: bytes, now: Instant, encoding: Encoding = "der"
) -> dict[str, str]:
    """The headers to add to a JSON POST of `body` to `url`."""
    address = urlsplit(url)
    created = now // SECOND
    covered = {
        "@method": "POST",
        "@authority": address.netloc.lower(),
        "@path": address.path or "/",
        "signature-date": iso(now)[:23] + "Z",
        "content-digest": f"sha-512=:{base64.b64encode(hashlib.sha512(body).digest()).decode()}:",
        "content-type": "application/json",
    }
    names = " ".join(f'"{name}"' for name in covered)
    parameters = f'({names});alg="ecdsa-p256-sha256";keyid="{key_id}";created={created};expires={created + _LIFETIME}'
    signature = key.sign(_signature_base(covered, parameters), ec.ECDSA(hashes.SHA256()))
    if encoding == "raw":
        r, s = utils.decode_dss_signature(signature)
        signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    return {
        "Content-Digest": covered["content-digest"],
        "Signature-Date": covered["signature-date"],
        "Signature-Input": f"sig-pp={parameters}",
        "Signature": f"sig-pp=:{base64.b64encode(signature).decode()}:",
        "Accept-Digest": "sha-512",
    }


def verify(key: PublicKey, callback: Callback, now: Instant) -> bool:
    """Whether the callback's body is unchanged, the signature is recent, and it was made with this key."""
    signature_input = _SIGNATURE_INPUT.match(header(callback, "signature-input"))
    signature_header = _SIGNATURE.match(header(callback, "signature"))
    if signature_input is None or signature_header is None or signature_input[1] != signature_header[1]:
        return False
    parameters = signature_input[2].rstrip()
    names = _COVERED.findall(parameters.partition(")")[0])
    parameter_values = {name: quoted or number for name, quoted, number in _PARAMETER.findall(parameters)}
    if not (set(names) >= _REQUIRED and _is_recent(parameter_values, now) and _digest_matches(callback)):
        return False
    components = _components(callback)
    covered = {name: components.get(name, "") for name in names}
    try:
        signature = base64.b64decode(signature_header[2], validate=True)
    except binascii.Error:
        return False
    return _signature_matches(key, parameter_values.get("alg", ""), signature, _signature_base(covered, parameters))


def _signature_base(covered: Mapping[str, str], parameters: str) -> bytes:
    lines = [f'"{name}": {value}' for name, value in covered.items()]
    return "\n".join([*lines, f'"@signature-params": {parameters}']).encode()


def _components(callback: Callback) -> dict[str, str]:
    """Everything that a signature can cover, read once: a stranger may name thousands of components."""
    headers: dict[str, str] = {}
    for name, value in callback.headers.items():
        headers.setdefault(name.lower(), value.strip())
    return headers | {
        "@method": callback.method.upper(),
        "@authority": headers.get("host", "").lower(),
        "@path": callback.path.partition("?")[0],
    }


def _is_recent(parameter_values: Mapping[str, str], now: Instant) -> bool:
    seconds = now // SECOND
    try:
        created = int(parameter_values["created"])
        expires = int(parameter_values.get("expires", created + _LIFETIME))
    except (KeyError, ValueError):
        return False
    return created - _TOLERANCE <= seconds <= expires + _TOLERANCE


def _digest_matches(callback: Callback) -> bool:
    name, _, value = header(callback, "content-digest").strip().partition("=")
    digest = _DIGESTS.get(name.lower())
    if digest is None:
        return False
    return value == f":{base64.b64encode(digest(callback.body).digest()).decode()}:"


def _signature_matches(key: PublicKey, algorithm: str, signature: bytes, signed: bytes) -> bool:
    if isinstance(key, rsa.RSAPublicKey):
        return _rsa_signature_matches(key, algorithm, signature, signed)
    digest = hashes.SHA384() if isinstance(key.curve, ec.SECP384R1) else hashes.SHA256()
    half = key.curve.key_size // 8
    candidates = [signature]
    if len(signature) == 2 * half:
        r, s = int.from_bytes(signature[:half], "big"), int.from_bytes(signature[half:], "big")
        candidates.append(utils.encode_dss_signature(r, s))
    for candidate in candidates:
        try:
            key.verify(candidate, signed, ec.ECDSA(digest))
        except (InvalidSignature, ValueError):
            continue
        return True
    return False


def _rsa_signature_matches(key: rsa.RSAPublicKey, algorithm: str, signature: bytes, signed: bytes) -> bool:
    try:
        if algorithm == "rsa-pss-sha512":
            pss = padding.PSS(padding.MGF1(hashes.SHA512()), padding.PSS.AUTO)
            key.verify(signature, signed, pss, hashes.SHA512())
        else:
            key.verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        return False
    return True
