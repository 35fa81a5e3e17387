"""Secrets at rest: encrypted with the newest of `GUICHET_SECRET_KEYS`, readable with any of them."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

_KEY_GONE: Final = "GUICHET_SECRET_KEYS no longer holds the key of a stored secret"


class UnreadableSecret(Exception):
    """A stored secret was encrypted with a key that is no longer in GUICHET_SECRET_KEYS."""


class Vault:
    """The first secret imports the package `cryptography`: 30 modules and 8 MB, a hundredth of a second."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys
        # A signature needs its secret at every attempt; the texts are few and small.
        self.decrypt = lru_cache(maxsize=4096)(self._decrypt)

    @cached_property
    def _fernet(self) -> "MultiFernet":
        from cryptography.fernet import Fernet, MultiFernet  # noqa: PLC0415 - see above

        return MultiFernet([Fernet(key) for key in self._keys])

    def encrypt(self, secret: str) -> str:
        return self._fernet.encrypt(secret.encode()).decode()

    def encrypt_bytes(self, content: bytes) -> str:
        """As `encrypt`, for a part of a document: 1 ms for 256 KiB."""
        return self._fernet.encrypt(content).decode()

    def decrypt_bytes(self, token: str) -> bytes:
        """What `encrypt_bytes` was given. Unlike a secret it is not kept in memory. Raises UnreadableSecret."""
        from cryptography.fernet import InvalidToken  # noqa: PLC0415 - see above

        try:
            return self._fernet.decrypt(token)
        except InvalidToken as error:
            raise UnreadableSecret(_KEY_GONE) from error

    def renewed(self, token: str) -> str | None:
        """The same secret encrypted with the newest key; None when it already is. Raises UnreadableSecret."""
        from cryptography.fernet import Fernet, InvalidToken  # noqa: PLC0415 - see above

        try:
            Fernet(self._keys[0]).decrypt(token)
        except InvalidToken:
            return self.encrypt_bytes(self.decrypt_bytes(token))
        return None

    def _decrypt(self, token: str) -> str:
        return self.decrypt_bytes(token).decode()
