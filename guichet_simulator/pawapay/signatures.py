"""How pawaPay signs callbacks, and what it checks in a signed request: the digest of the body, the period, the client's
key, the signature. Neither shares code with the other, nor with ours.

Source: docs/providers/pawapay.md, "Signatures".
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
from cryptography.hazmat.primitives.asymmetric import ec, utils
from starlette.requests import Request

from guichet.clock import SECOND, Instant, iso
from guichet_simulator.store import Store
from guichet_simulator.stored_keys import stored_key

_INPUT: Final = re.compile(r"(?P<label>[a-z][a-z0-9_-]*)=(?P<parameters>\((?P<names>[^)]*)\)(?P<values>.*))")
_VALUE: Final = re.compile(r';([a-z]+)=(?:"([^"]*)"|([0-9]+))')
_SIGNATURE: Final = re.compile(r"(?P<label>[a-z][a-z0-9_-]*)=:(?P<bytes>[A-Za-z0-9+/=]+):")
#: What a signature must cover. Clients may add others, as an official sample does with "content-length".
_REQUIRED: Final = {"@method", "@authority", "@path", "signature-date", "content-digest", "content-type"}
_DIGESTS: Final = {"sha-256": hashlib.sha256, "sha-512": hashlib.sha512}
_HASHES: Final[Mapping[str, hashes.HashAlgorithm]] = {
    "ecdsa-p256-sha256": hashes.SHA256(),
    "ecdsa-p384-sha384": hashes.SHA384(),
}
#: Seconds by which the clocks may differ.
_SKEW: Final = 60
_SIGNATURE_LIFETIME: Final = 60
_COORDINATE_BYTES: Final = 32
KEY_ID: Final = "HTTP_EC_P256_KEY:1"


def is_signed(request: Request, body: bytes, *, keys: Mapping[str, str], now: Instant) -> bool:
    """Whether the request is signed by one of `keys` (PEM, by key id), now, for this address and this body."""
    signature_input = _INPUT.fullmatch(request.headers.get("signature-input", ""))
    signature = _SIGNATURE.fullmatch(request.headers.get("signature", ""))
    if signature_input is None or signature is None or signature_input["label"] != signature["label"]:
        return False
    names = re.findall(r'"([^"]+)"', signature_input["names"])
    values = {name: quoted or number for name, quoted, number in _VALUE.findall(signature_input["values"])}
    if not set(names) >= _REQUIRED or not _in_period(values, now) or not _digest_matches(request, body):
        return False
    pem, algorithm = keys.get(values.get("keyid", "")), _HASHES.get(values.get("alg", ""))
    if pem is None or algorithm is None:
        return False
    lines = [f'"{name}": {_component(request, name)}' for name in names]
    signed = "\n".join([*lines, f'"@signature-params": {signature_input["parameters"]}']).encode()
    return _made_by(pem, signature["bytes"], signed, algorithm)


def _component(request: Request, name: str) -> str:
    derived = {
        "@method": request.method,
        "@authority": request.headers.get("host", "").lower(),
        "@path": request.url.path,
    }
    return derived.get(name) or request.headers.get(name, "")


def _in_period(values: Mapping[str, str], now: Instant) -> bool:
    try:
        created, expires = int(values["created"]), int(values["expires"])
    except (KeyError, ValueError):
        return False
    return created - _SKEW <= now // SECOND <= expires + _SKEW


def _digest_matches(request: Request, body: bytes) -> bool:
    name, _, value = request.headers.get("content-digest", "").partition("=")
    digest = _DIGESTS.get(name)
    return digest is not None and value == f":{base64.b64encode(digest(body).digest()).decode()}:"


def _made_by(pem: str, encoded: str, signed: bytes, algorithm: hashes.HashAlgorithm) -> bool:
    """DER as both official samples make it, or r and s side by side as RFC 9421 wants it."""
    key = serialization.load_pem_public_key(pem.encode())
    assert isinstance(key, ec.EllipticCurvePublicKey)
    try:
        signature = base64.b64decode(encoded, validate=True)
        half = key.key_size // 8
        if len(signature) == 2 * half:
            numbers = (int.from_bytes(part, "big") for part in (signature[:half], signature[half:]))
            signature = utils.encode_dss_signature(*numbers)
        key.verify(signature, signed, ec.ECDSA(algorithm))
    except (InvalidSignature, binascii.Error):
        return False
    return True


class HttpSigner:
    """Signs as pawaPay does, with a key that is made once and stored."""

    def __init__(self, store: Store) -> None:
        self._key = stored_key(store, "pawapay:key", lambda: ec.generate_private_key(ec.SECP256R1()))

    def public_key(self) -> Mapping[str, str]:
        """Its id and its PEM, as pawaPay states them."""
        spki = serialization.PublicFormat.SubjectPublicKeyInfo
        pem = self._key.public_key().public_bytes(serialization.Encoding.PEM, spki)
        return {"id": KEY_ID, "key": pem.decode()}

    def sign(self, url: str, body: bytes, now: Instant, *, der: bool, forged: bool) -> Mapping[str, str]:
        """The headers of a signed POST. `der`: ECDSA encoded as DER instead of r||s. `forged`: with another key."""
        address = urlsplit(url)
        created = now // SECOND
        digest = base64.b64encode(hashlib.sha512(body).digest()).decode()
        covered = {
            "@method": "POST",
            "@authority": address.netloc.lower(),
            "@path": address.path or "/",
            "signature-date": iso(now)[:23] + "Z",
            "content-digest": f"sha-512=:{digest}:",
            "content-type": "application/json; charset=UTF-8",
        }
        names = " ".join(f'"{name}"' for name in covered)
        parameters = f'({names});alg="ecdsa-p256-sha256";keyid="{KEY_ID}";created={created}'
        parameters += f";expires={created + _SIGNATURE_LIFETIME}"
        lines = [f'"{name}": {value}' for name, value in covered.items()]
        base = "\n".join([*lines, f'"@signature-params": {parameters}'])
        key = ec.generate_private_key(ec.SECP256R1()) if forged else self._key
        signature = key.sign(base.encode(), ec.ECDSA(hashes.SHA256()))
        encoded = base64.b64encode(signature if der else _raw(signature)).decode()
        return {
            "Content-Type": covered["content-type"],
            "Content-Digest": covered["content-digest"],
            "Signature-Date": covered["signature-date"],
            "Signature-Input": f"sig-pp={parameters}",
            "Signature": f"sig-pp=:{encoded}:",
        }


def _raw(signature: bytes) -> bytes:
    r, s = utils.decode_dss_signature(signature)
    return r.to_bytes(_COORDINATE_BYTES, "big") + s.to_bytes(_COORDINATE_BYTES, "big")
