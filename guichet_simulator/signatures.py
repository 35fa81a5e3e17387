"""Keys and signatures: HMAC with a timestamp (Wave, Sonatel, Stripe), RFC 9421 (pawaPay), RSA for PINs (Sonatel)."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

from guichet.clock import SECOND, Instant, iso
from guichet_simulator.models import QueuedCallback
from guichet_simulator.store import Store

#: A forged callback is either signed with another secret, or properly signed this long ago, in seconds.
_STALE: Final = 3600
_SIGNATURE_LIFETIME: Final = 60
_SIGNATURE_TOLERANCE: Final = 300
_COORDINATE_BYTES: Final = 32
KEY_ID: Final = "HTTP_EC_P256_KEY:1"


def hmac_hex(secret: str, message: bytes) -> str:
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def hmac_signature_header(body: bytes, queued: QueuedCallback, *, secret: str, separator: bytes, now: Instant) -> str:
    """`t=<unix seconds>,v1=<hex>` over `{t}{separator}{body}`. A forged callback has a wrong secret or an old time."""
    seconds = now // SECOND
    if queued.forged:
        if queued.id % 2:
            secret = f"not-{secret}"
        else:
            seconds -= _STALE
    return f"t={seconds},v1={hmac_hex(secret, str(seconds).encode() + separator + body)}"


def is_signed_now(header: str, body: bytes, *, secret: str, now: Instant) -> bool:
    """Whether `header` is `t=<unix seconds>,v1=<hex>` over `{t}{body}`, and `t` is at most five minutes from now."""
    seconds, _, digest = header.removeprefix("t=").partition(",v1=")
    recent = seconds.isdecimal() and abs(now // SECOND - int(seconds)) <= _SIGNATURE_TOLERANCE
    return recent and hmac.compare_digest(hmac_hex(secret, seconds.encode() + body), digest)


class HttpSigner:
    """Signs as pawaPay does, with a key that is made once and stored."""

    def __init__(self, store: Store) -> None:
        saved: str | None = store.setting("pawapay:key")
        if saved is None:
            saved = _pem(ec.generate_private_key(ec.SECP256R1()))
            store.set_setting("pawapay:key", saved)
        key = serialization.load_pem_private_key(saved.encode(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._key = key

    def public_key(self) -> str:
        spki = serialization.PublicFormat.SubjectPublicKeyInfo
        return self._key.public_key().public_bytes(serialization.Encoding.PEM, spki).decode()

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


class PinDecryptor:
    """Sonatel's RSA key, under which retailers send their PIN; it is made once and stored."""

    def __init__(self, store: Store) -> None:
        saved: str | None = store.setting("sonatel:key")
        if saved is None:
            saved = _pem(rsa.generate_private_key(public_exponent=65537, key_size=2048))
            store.set_setting("sonatel:key", saved)
        key = serialization.load_pem_private_key(saved.encode(), None)
        assert isinstance(key, rsa.RSAPrivateKey)
        self._key = key

    def public_key(self) -> str:
        """DER in base64."""
        spki = serialization.PublicFormat.SubjectPublicKeyInfo
        return base64.b64encode(self._key.public_key().public_bytes(serialization.Encoding.DER, spki)).decode()

    def decrypt(self, encrypted: str) -> str:
        """The PIN; empty when it cannot be decrypted."""
        try:
            return self._key.decrypt(base64.b64decode(encrypted, validate=True), padding.PKCS1v15()).decode()
        except (ValueError, binascii.Error):
            return ""


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()


def _raw(signature: bytes) -> bytes:
    r, s = utils.decode_dss_signature(signature)
    return r.to_bytes(_COORDINATE_BYTES, "big") + s.to_bytes(_COORDINATE_BYTES, "big")
