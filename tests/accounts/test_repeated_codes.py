"""A code that was used before: refused, and a line of the log like that of any other refused code."""

from typing import Any

import pytest

from guichet.accounts import factors
from guichet.accounts.errors import CodeRefused
from guichet.accounts.sign_in import give_factor
from tests.accounts.conftest import PHONE, People
from tests.accounts.test_sign_in import AWA, with_codes
from tests.console.test_asvs_sessions import RecordedLines


async def test_a_repeated_code_is_refused_and_is_a_line_of_the_log(
    sqlite_people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    people, log = sqlite_people, RecordedLines()
    signed = await people.joined(AWA)
    seed = await with_codes(people)
    user, code = await people.user(AWA), people.code(seed)
    await factors.check_totp(people.ctx, user, code)
    monkeypatch.setattr("guichet.accounts.sign_in.log", log)
    with pytest.raises(CodeRefused):
        await give_factor(people.accounts, signed.session, user, code, PHONE)
    [(event, fields)] = log.lines
    expected: dict[str, Any] = {"user": user.id, "means": "code", "why": "CodeRefused"}
    assert (event, {name: fields[name] for name in expected}) == ("sign_in.refused", expected)
    assert code not in repr(log.lines)
