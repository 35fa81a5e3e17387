"""HTTP message signatures (RFC 9421) in the shape pawaPay uses them, both directions.

Source: docs/providers/pawapay.md, "Signatures". RFC 9421 encodes an ECDSA signature as r||s, pawaPay's samples as DER:
ours are r||s, both are accepted.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

from guichet.clock import SECOND, Instant, iso
from guichet.providers.base import Callback
from guichet.providers.client import header

_LIFE: Final = 60
#: Clocks differ, and a queue may hold a notification for a while.
_TOLERANCE: Final = 300
_LABELLED: Final = re.compile(r'\s*([a-z0-9-]+)=(\((?:"[^"]+"\s*)*\)[^,]*)')
_SIGNATURE: Final = re.compile(r"\s*([a-z0-9-]+)=:([A-Za-z0-9+/=]+):")
_PARAMETER: Final = re.compile(r';(\w+)=(?:"([^"]*)"|(\d+))')
#: What a signature must cover to say anything about a notification.
_NEEDED: Final = frozenset({"@method", "@path", "content-digest"})
_DIGESTS: Final = {"sha-512": hashlib.sha512, "sha-256": hashlib.sha256}


def private_key(pem: str) -> ec.EllipticCurvePrivateKey:
    """Raises ValueError for anything but a PEM of an unencrypted P-256 key."""
    key = serialization.load_pem_private_key(_pem(pem), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError("the signing key must be an EC key on P-256")  # noqa: TRY004  a wrong file, no wrong call
    return key


def public_key(pem: str) -> ec.EllipticCurvePublicKey | rsa.RSAPublicKey:
    """Raises ValueError for anything but a PEM of an EC or RSA public key."""
    key = serialization.load_pem_public_key(_pem(pem))
    if not isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey):
        raise ValueError("the public key must be an EC or RSA key")  # noqa: TRY004
    return key


def _pem(text: str) -> bytes:
    """Environment variables often carry a PEM on one line, with its line ends spelled out."""
    return text.replace("\\n", "\n").encode()


def sign(key: ec.EllipticCurvePrivateKey, key_id: str, url: str, body: bytes, now: Instant) -> dict[str, str]:
    """The headers of a signed JSON POST."""
    where = urlsplit(url)
    created = now // SECOND
    covered = {
        "@method": "POST",
        "@authority": where.netloc.lower(),
        "@path": where.path or "/",
        "signature-date": iso(now)[:23] + "Z",
        "content-digest": f"sha-512=:{base64.b64encode(hashlib.sha512(body).digest()).decode()}:",
        "content-type": "application/json",
    }
    names = " ".join(f'"{name}"' for name in covered)
    parameters = f'({names});alg="ecdsa-p256-sha256";keyid="{key_id}";created={created};expires={created + _LIFE}'
    r, s = utils.decode_dss_signature(key.sign(_base(covered, parameters), ec.ECDSA(hashes.SHA256())))
    raw = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    return {
        "Content-Digest": covered["content-digest"],
        "Signature-Date": covered["signature-date"],
        "Signature-Input": f"sig-pp={parameters}",
        "Signature": f"sig-pp=:{base64.b64encode(raw).decode()}:",
        "Accept-Digest": "sha-512",
    }


def verified(key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey, callback: Callback, now: Instant) -> bool:
    """Whether the notification is whole, fresh, and signed by this key."""
    described = _LABELLED.match(header(callback, "signature-input"))
    carried = _SIGNATURE.match(header(callback, "signature"))
    if described is None or carried is None or described[1] != carried[1]:
        return False
    parameters = described[2].rstrip()
    names = re.findall(r'"([^"]+)"', parameters.partition(")")[0])
    stated = {name: quoted or number for name, quoted, number in _PARAMETER.findall(parameters)}
    if not (names and set(names) >= _NEEDED and _fresh(stated, now) and _digest_matches(callback)):
        return False
    covered = {name: _component(callback, name) for name in names}
    try:
        signature = base64.b64decode(carried[2], validate=True)
    except binascii.Error:
        return False
    return _checks(key, stated.get("alg", ""), signature, _base(covered, parameters))


def _base(covered: Mapping[str, str], parameters: str) -> bytes:
    lines = [f'"{name}": {value}' for name, value in covered.items()]
    return "\n".join([*lines, f'"@signature-params": {parameters}']).encode()


def _component(callback: Callback, name: str) -> str:
    derived = {
        "@method": callback.method.upper(),
        "@authority": header(callback, "host").lower(),
        "@path": callback.path.partition("?")[0],
    }
    return derived[name] if name in derived else header(callback, name).strip()


def _fresh(stated: Mapping[str, str], now: Instant) -> bool:
    seconds = now // SECOND
    try:
        created = int(stated["created"])
        expires = int(stated.get("expires", created + _LIFE))
    except (KeyError, ValueError):
        return False
    return created - _TOLERANCE <= seconds <= expires + _TOLERANCE


def _digest_matches(callback: Callback) -> bool:
    name, _, value = header(callback, "content-digest").strip().partition("=")
    digest = _DIGESTS.get(name.lower())
    if digest is None:
        return False
    return value == f":{base64.b64encode(digest(callback.body).digest()).decode()}:"


def _checks(key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey, algorithm: str, signature: bytes, signed: bytes) -> bool:
    if isinstance(key, rsa.RSAPublicKey):
        return _checks_rsa(key, algorithm, signature, signed)
    wide = isinstance(key.curve, ec.SECP384R1)
    half = key.curve.key_size // 8
    candidates = [signature]
    if len(signature) == 2 * half:
        r, s = int.from_bytes(signature[:half], "big"), int.from_bytes(signature[half:], "big")
        candidates.append(utils.encode_dss_signature(r, s))
    for candidate in candidates:
        try:
            key.verify(candidate, signed, ec.ECDSA(hashes.SHA384() if wide else hashes.SHA256()))
        except (InvalidSignature, ValueError):
            continue
        return True
    return False


def _checks_rsa(key: rsa.RSAPublicKey, algorithm: str, signature: bytes, signed: bytes) -> bool:
    try:
        if algorithm == "rsa-pss-sha512":
            pss = padding.PSS(padding.MGF1(hashes.SHA512()), padding.PSS.AUTO)
            key.verify(signature, signed, pss, hashes.SHA512())
        else:
            key.verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        return False
    return True
