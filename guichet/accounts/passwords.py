"""Passwords: Argon2id, at most two hashes at once.

A hash takes some tens of milliseconds of processor and 19 MiB of memory on purpose, so a flood of sign-ins must neither
fill the memory nor stop the event loop: hashes run in two threads, and only so many wait for them.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from importlib import resources
from typing import Final, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from guichet.accounts.errors import TooBusy
from guichet.domain.accounts import PASSWORD_MAX, PASSWORD_MIN, normal_password

#: The parameters that OWASP recommends for Argon2id: 19 MiB, two passes, one lane. A stored hash names its own, and is
#: replaced at the next sign-in when these change.
_HASHER: Final = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
T = TypeVar("T")
#: Hashes at once, and how many more may wait. At 40 ms each, the last of them waits for four seconds.
AT_ONCE: Final = 2
MOST_WAITING: Final = 200


class Passwords:
    """One for each process."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="password")
        self._waiting = 0

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    async def hash(self, password: str) -> str:
        """Raises TooBusy when too many wait."""
        return await self._run(partial(_HASHER.hash, normal_password(password)))

    async def matches(self, stored_hash: str | None, password: str) -> bool:
        """Whether `password` is the one of `stored_hash`. None takes as long, and never matches. Raises
        TooBusy."""
        same = await self._run(partial(_verify, stored_hash, normal_password(password)))
        return same and stored_hash is not None

    async def _run(self, work: Callable[[], T]) -> T:
        if self._waiting >= AT_ONCE + MOST_WAITING:
            raise TooBusy
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._waiting -= 1


def is_outdated(stored_hash: str) -> bool:
    """Whether the hash was made with other parameters than today's."""
    return _HASHER.check_needs_rehash(stored_hash)


def weakness(password: str, *known: str) -> str | None:
    """Why this password is refused: `short`, `long`, `common`, or `known` (it holds the address or the name); None if
    it is not. No rule about kinds of characters (ASVS 4.0.3, 2.1.9)."""
    text = normal_password(password)
    if len(text) < PASSWORD_MIN:
        return "short"
    if len(text) > PASSWORD_MAX:
        return "long"
    folded = text.casefold()
    if folded in _common() or len(set(folded)) < 5:
        return "common"
    parts = {part for name in known for part in name.casefold().replace("@", " ").split() if len(part) >= 4}
    left = folded
    for part in parts:
        left = left.replace(part, "")
    return "known" if len(left) < PASSWORD_MIN // 2 else None


@cache
def _common() -> frozenset[str]:
    """Passwords that everybody tries first and that are long enough to be chosen here (ASVS 4.0.3, 2.1.7)."""
    lines = (resources.files("guichet") / "data/common_passwords.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


@cache
def _dummy_hash() -> str:
    """Compared when there is no such user, so that the answer takes as long."""
    return _HASHER.hash("nobody has this password")


def _verify(stored_hash: str | None, password: str) -> bool:
    try:
        return _HASHER.verify(stored_hash or _dummy_hash(), password)
    except (VerificationError, InvalidHashError):
        return False
