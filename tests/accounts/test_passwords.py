"""Password hashes: two at once, a bounded queue, and the same time for nobody's password."""

import asyncio
import threading

import pytest

from guichet.accounts import passwords as module
from guichet.accounts.errors import TooBusy
from guichet.accounts.passwords import AT_ONCE, MOST_WAITING, Passwords, is_outdated
from tests.conftest import REAL_HASHER
from tests.patience import PATIENCE


@pytest.fixture(autouse=True)
def production_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HASHER", REAL_HASHER)


async def test_a_password_matches_its_own_hash_only(passwords: Passwords) -> None:
    hashed = await passwords.hash("trois chats dorment")
    assert hashed.startswith("$argon2id$v=19$m=19456,t=2,p=1$"), "as OWASP recommends"
    assert await passwords.matches(hashed, "trois chats dorment")
    assert not await passwords.matches(hashed, "trois chats dorment ")
    assert not await passwords.matches(None, "nobody has this password")
    assert not is_outdated(hashed)
    assert await passwords.hash("trois chats dorment") != hashed, "each has a salt of its own"
    assert is_outdated("$argon2id$v=19$m=8192,t=1,p=1$c29tZXNhbHQ$UyDThtKDd5rX0BXVhnJpZvVtVSMGwbLrVLhHXYoJbeM")


async def test_an_accent_may_be_composed_in_either_way(passwords: Passwords) -> None:
    hashed = await passwords.hash("éléphant et girafe")
    assert await passwords.matches(hashed, "e\u0301le\u0301phant et girafe")


async def test_a_flood_is_refused_beyond_the_queue_and_served_two_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hash itself stands still until the test lets it go on."""
    running, most, go_on = 0, 0, threading.Event()
    lock = threading.Lock()

    def slow(stored: str | None, password: str) -> bool:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        assert go_on.wait(timeout=PATIENCE)
        with lock:
            running -= 1
        return True

    monkeypatch.setattr(module, "_verify", slow)
    made = Passwords()
    try:
        flood = [asyncio.create_task(made.matches("x", "y")) for _ in range(AT_ONCE + MOST_WAITING + 10)]
        await asyncio.sleep(0)
        refused = [task for task in flood if task.done()]
        assert len(refused) == 10
        for task in refused:
            with pytest.raises(TooBusy):
                await task
        go_on.set()
        assert all(await asyncio.gather(*(task for task in flood if task not in refused)))
        assert most == AT_ONCE
    finally:
        go_on.set()
        made.close()
