"""Callbacks that name nothing of ours: a bounded sample of them is kept, all are counted."""

from typing import Any

import pytest
from sqlalchemy import bindparam, func, insert, select

from guichet import metrics
from guichet.clock import SECOND
from guichet.db.tables import provider_callbacks, unmatched_callbacks
from guichet.provider_callbacks.unmatched import MOST, MOST_BYTES, UNKNOWN_ACCOUNT
from tests.payments.conftest import LivePayments
from tests.server.metrics_reader import counted


async def count(live: LivePayments, account: str) -> int:
    found = select(func.count()).where(unmatched_callbacks.c.provider_account == bindparam("account"))
    return int((await live.ctx.db.one(found, account=account))[0])


async def fill(live: LivePayments, account: str) -> None:
    """As many callbacks as are kept of one account, a second apart."""
    now = live.ctx.clock.now()
    values = {"provider_account": account, "path": "/old", "body": "", "reason": "no_match"}
    for number in range(MOST):
        await live.ctx.db.write(
            insert(unmatched_callbacks).values({name: bindparam(name) for name in (*values, "received_at")}),
            **values,
            received_at=now - (MOST - number) * 61 * SECOND,
        )


def total(account: str, reason: str) -> float:
    return counted("guichet_unmatched_callbacks_total", provider_account=account, reason=reason)


async def send(live: LivePayments, name: str, body: bytes = b'{"reference": "nothing of ours"}') -> None:
    answer = await live.service.call("POST", f"/providers/{name}/callback", body)
    assert answer.status == 200


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("first", b'{"reference": "x"}', "no_match"),
        ("first", b"\xff", "unreadable"),
        ("nobody", b"{}", "unknown_account"),
    ],
)
async def test_every_callback_is_counted_by_its_account_and_reason(
    sqlite_live: LivePayments, name: str, body: bytes, reason: str
) -> None:
    account = UNKNOWN_ACCOUNT if reason == "unknown_account" else name
    before = total(account, reason)
    for _ in range(3):
        await send(sqlite_live, name, body)
    assert total(account, reason) == before + 3
    assert await count(sqlite_live, account) == 3


async def test_names_that_strangers_choose_share_one_sample_and_one_label(sqlite_live: LivePayments) -> None:
    for number in range(5):
        await send(sqlite_live, f"stranger-{number}")
    assert await count(sqlite_live, UNKNOWN_ACCOUNT) == 5
    rows: Any = await sqlite_live.ctx.db.scan(select(unmatched_callbacks.c.path))
    assert {path for (path,) in rows} == {f"/providers/stranger-{number}/callback" for number in range(5)}
    assert not [each for metric in metrics.collect() for each in metric.samples if "stranger" in str(each.labels)]


@pytest.mark.both_databases
async def test_a_full_sample_grows_no_more_and_still_shows_what_comes_now(live: LivePayments) -> None:
    """Its oldest row is replaced at most once a minute; the other accounts have samples of their own."""
    await fill(live, "first")
    paths = select(func.count()).where(unmatched_callbacks.c.path == "/providers/first/callback")
    for _ in range(5):
        await send(live, "first")
    assert await count(live, "first") == MOST
    assert tuple(await live.ctx.db.one(paths)) == (1,)
    live.service.clock.advance(61)
    for _ in range(5):
        await send(live, "first")
    assert await count(live, "first") == MOST
    assert tuple(await live.ctx.db.one(paths)) == (2,)
    await send(live, "second")
    assert await count(live, "second") == 1


async def test_the_body_that_is_kept_is_bounded(sqlite_live: LivePayments) -> None:
    await send(sqlite_live, "first", b"x" * 60_000)
    (body,) = await sqlite_live.ctx.db.one(select(unmatched_callbacks.c.body))
    assert len(body) == 8 * 1024


@pytest.mark.both_databases
@pytest.mark.parametrize("body", [b"\xff" * 60_000, "€".encode() * 20_000, b"\x00\x1b" * 30_000])
async def test_a_row_is_bounded_in_bytes_whatever_was_sent(live: LivePayments, body: bytes) -> None:
    """Each of these characters takes three bytes once it is stored as text."""
    await send(live, "first", body)
    (stored, path) = await live.ctx.db.one(select(unmatched_callbacks.c.body, unmatched_callbacks.c.path))
    assert len(stored.encode()) + len(path.encode()) <= MOST_BYTES // MOST
    assert not {"\0", "\x1b"} & set(stored)


def sampled(account: str, result: str) -> float:
    return counted("guichet_unmatched_callbacks_sampled_total", provider_account=account, result=result)


async def test_a_flood_is_mostly_dropped_before_it_reaches_the_database_or_the_log(
    live: LivePayments, capsys: pytest.CaptureFixture[str]
) -> None:
    """400 callbacks at once from one stranger, then one a second for a minute."""
    before = total("first", "no_match"), sampled("first", "kept"), sampled("first", "dropped")
    for _ in range(400):
        await send(live, "first", b'{"reference": "nothing of ours", "more": "%s"}' % (b"x" * 30_000))
    assert await count(live, "first") == 20
    assert total("first", "no_match") == before[0] + 400
    assert (sampled("first", "kept"), sampled("first", "dropped")) == (before[1] + 20, before[2] + 380)
    lines = capsys.readouterr().err.splitlines()
    assert len([line for line in lines if "callback.unmatched" in line]) == 20
    for _ in range(60):
        live.service.clock.advance(1)
        await send(live, "first")
    assert await count(live, "first") == 50
    # Another account is not affected.
    await send(live, "second")
    assert await count(live, "second") == 1


async def test_access_lines_of_strangers_are_sampled_and_all_are_counted(
    sqlite_live: LivePayments, capsys: pytest.CaptureFixture[str]
) -> None:
    """Requests that need no key: callbacks, and addresses that do not exist."""
    for number in range(200):
        await send(sqlite_live, "first")
        assert (await sqlite_live.service.call("GET", f"/nothing/{number}")).status == 404
    lines = [line for line in capsys.readouterr().err.splitlines() if " → " in line]
    assert 200 <= len(lines) <= 320, "two hundred at once, and ten a second"
    # A request with a key has its line.
    await sqlite_live.merchant.get("/balance")
    assert "/v1/balance" in capsys.readouterr().err


@pytest.mark.both_databases
async def test_callbacks_about_one_payment_are_one_row_and_few_writes(live: LivePayments) -> None:
    """Whoever knows a payment's reference may send many; what is refused was not stored, so it is not acknowledged."""
    payment = await live.merchant.pay()
    path = f"/providers/first/callback/{payment['reference']}"
    statuses = [(await live.service.call("POST", path, {})).status for _ in range(200)]
    assert statuses == [200] * 60 + [429] * 140
    assert (await live.service.call("POST", path, {})).headers["Retry-After"] == "1"
    counted = select(provider_callbacks.c.received_count)
    assert [tuple(row) for row in await live.ctx.db.scan(counted)] == [(60,)]
    live.service.clock.advance(3)
    statuses = [(await live.service.call("POST", path, {})).status for _ in range(10)]
    assert statuses == [200] * 3 + [429] * 7
    assert [tuple(row) for row in await live.ctx.db.scan(counted)] == [(63,)]
    other = await live.merchant.pay()
    assert (await live.service.call("POST", f"/providers/first/callback/{other['reference']}", {})).status == 200
