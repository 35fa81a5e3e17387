"""A form's token is ours, for one link, for a while."""

import pytest
from cryptography.fernet import Fernet

from guichet import clock
from guichet.checkout.tokens import MAX_AGE, FormTokens

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


class Frozen(clock.SystemClock):
    def __init__(self) -> None:
        self.instant = clock.Instant(1_795_256_130_000_000)

    def now(self) -> clock.Instant:
        return self.instant


def test_a_token_is_fresh_for_its_own_link_only() -> None:
    tokens = FormTokens([NEW], Frozen())
    issued = tokens.issue("link-a")
    read = tokens.read("link-a", issued)
    assert read is not None
    assert read.fresh
    assert len(read.nonce) == 22
    elsewhere = tokens.read("link-b", issued)
    assert elsewhere is not None
    assert not elsewhere.fresh


def test_every_token_is_different() -> None:
    tokens = FormTokens([NEW], Frozen())
    assert len({tokens.issue("link") for _ in range(100)}) == 100


def test_a_token_expires() -> None:
    time = Frozen()
    tokens = FormTokens([NEW], time)
    issued = tokens.issue("link")
    time.instant = clock.later(time.instant, MAX_AGE)
    assert (read := tokens.read("link", issued)) is not None
    assert read.fresh
    time.instant = clock.later(time.instant, 1)
    assert (read := tokens.read("link", issued)) is not None
    assert not read.fresh


def test_rotating_the_keys_keeps_open_forms_working_twice() -> None:
    issued = FormTokens([OLD], Frozen()).issue("link")
    for keys in ([NEW, OLD], [Fernet.generate_key().decode(), NEW, OLD]):
        assert (read := FormTokens(keys, Frozen()).read("link", issued)) is not None
        assert read.fresh
    assert (read := FormTokens([NEW], Frozen()).read("link", issued)) is not None
    assert not read.fresh


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "é" * 22 + ".1.x", "A" * 22 + "." + "f" * 17 + "." + "A" * 22])
def test_an_invalid_token_is_refused(text: str) -> None:
    assert FormTokens([NEW], Frozen()).read("link", text) is None


def test_a_changed_token_is_not_fresh() -> None:
    tokens = FormTokens([NEW], Frozen())
    nonce, issued, signature = tokens.issue("link").split(".")
    for changed in (f"{'B' * 22}.{issued}.{signature}", f"{nonce}.{int(issued, 16) + 1:x}.{signature}"):
        assert (read := tokens.read("link", changed)) is not None
        assert not read.fresh
