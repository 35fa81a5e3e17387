"""Secrets at rest: keys can be rotated again and again."""

import pytest
from cryptography.fernet import Fernet

from guichet.merchants.vault import UnreadableSecret, Vault


def test_keys_are_rotated_twice() -> None:
    first, second, third = (Fernet.generate_key().decode() for _ in range(3))
    oldest = Vault([first]).encrypt("whsec_1")
    middle = Vault([second, first])
    assert middle.decrypt(oldest) == "whsec_1"
    newer = middle.encrypt("whsec_2")
    newest = Vault([third, second, first])
    assert [newest.decrypt(each) for each in (oldest, newer, newest.encrypt("whsec_3"))] == [
        "whsec_1",
        "whsec_2",
        "whsec_3",
    ]
    assert Vault([third]).decrypt(newest.encrypt("x")) == "x", "the newest key encrypts"
    assert Vault([second]).decrypt(newer) == "whsec_2"
    with pytest.raises(UnreadableSecret):
        Vault([third, second]).decrypt(oldest)
