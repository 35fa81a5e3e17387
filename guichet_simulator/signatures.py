"""How operators sign their notifications: HMAC with a timestamp (Wave, Sonatel, Stripe), RFC 9421 (pawaPay)."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from guichet.clock import SECOND, Instant, iso
from guichet_simulator.store import QueuedCallback, Store

#: A forged notification is either signed with another secret, or properly signed this long ago, in seconds.
_STALE: Final = 3600
_SIGNATURE_LIFE: Final = 60
_COORDINATE: Final = 32
KEY_ID: Final = "HTTP_EC_P256_KEY:1"


def hmac_hex(secret: str, message: bytes) -> str:
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def timestamped(secret: str, separator: bytes, body: bytes, now: Instant, queued: QueuedCallback) -> str:
    """`t=<unix>,v1=<hex>` over `{t}{separator}{body}`; a forged notification alternates between its two faults."""
    seconds = now // SECOND
    if queued.forged:
        if queued.id % 2:
            secret = f"not-{secret}"
        else:
            seconds -= _STALE
    return f"t={seconds},v1={hmac_hex(secret, str(seconds).encode() + separator + body)}"


class HttpSigner:
    """Signs as pawaPay does; its key is made once and remembered."""

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
        """The headers of a signed POST. `der`: the other encoding of ECDSA seen in the wild. `forged`: another key."""
        where = urlsplit(url)
        created = now // SECOND
        digest = base64.b64encode(hashlib.sha512(body).digest()).decode()
        covered = {
            "@method": "POST",
            "@authority": where.netloc.lower(),
            "@path": where.path or "/",
            "signature-date": iso(now)[:23] + "Z",
            "content-digest": f"sha-512=:{digest}:",
            "content-type": "application/json",
        }
        names = " ".join(f'"{name}"' for name in covered)
        parameters = f'({names});alg="ecdsa-p256-sha256";keyid="{KEY_ID}";created={created}'
        parameters += f";expires={created + _SIGNATURE_LIFE}"
        lines = [f'"{name}": {value}' for name, value in covered.items()]
        base = "\n".join([*lines, f'"@signature-params": {parameters}'])
        key = ec.generate_private_key(ec.SECP256R1()) if forged else self._key
        signature = key.sign(base.encode(), ec.ECDSA(hashes.SHA256()))
        encoded = base64.b64encode(signature if der else _raw(signature)).decode()
        return {
            "Content-Digest": covered["content-digest"],
            "Signature-Date": covered["signature-date"],
            "Signature-Input": f"sig-pp={parameters}",
            "Signature": f"sig-pp=:{encoded}:",
        }


def _pem(key: ec.EllipticCurvePrivateKey) -> str:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()


def _raw(signature: bytes) -> bytes:
    r, s = utils.decode_dss_signature(signature)
    return r.to_bytes(_COORDINATE, "big") + s.to_bytes(_COORDINATE, "big")
