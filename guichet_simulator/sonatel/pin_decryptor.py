"""Sonatel's RSA key, under which retailers send their PIN."""

import base64
import binascii

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from guichet_simulator.store import Store
from guichet_simulator.stored_keys import stored_key


class PinDecryptor:
    """With the key that is made once and stored."""

    def __init__(self, store: Store) -> None:
        self._key = stored_key(store, "sonatel:key", lambda: rsa.generate_private_key(65537, 2048))

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
