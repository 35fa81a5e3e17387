"""The audit log: one row for each act, in the act's transaction, that nobody changes unnoticed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from sqlalchemy import text

from guichet.audit_log import entries
from guichet.audit_log.entries import verify
from guichet.bootstrap import service
from guichet.context import AppContext
from guichet.db.errors import StorageError
from guichet.domain.audit_log import Act, Actor
from guichet.domain.chain_heads import ChainFault, KnownHead, KnownHeads
from guichet.settings import Settings

AWA = Actor("Awa [bold]", "awa")


@pytest.fixture
async def ctx(settings: Settings) -> AsyncIterator[AppContext]:
    async with service(settings) as opened:
        yield opened.ctx


async def add(ctx: AppContext, *subjects: str) -> None:
    for subject in subjects:
        async with ctx.db.transaction() as tx:
            act = Act(
                AWA, "key.revoked", "key", subject, reason="lost", before={"status": "active"}, after={"note": "é"}
            )
            await entries.record(tx, act, ctx.clock.now())


def known(digest: str) -> KnownHeads:
    return KnownHeads(acts=(KnownHead(digest, None, ChainFault.TYPED_HEAD()),))


async def without_triggers(ctx: AppContext, statement: str) -> None:
    """What somebody can do who owns the database."""
    async with ctx.db.transaction() as tx:
        if ctx.settings.embedded:
            await tx.write(text("DROP TRIGGER refuse_audit_log_update"))
            await tx.write(text("DROP TRIGGER refuse_audit_log_delete"))
        else:
            await tx.write(text("DROP TRIGGER refuse_audit_log_change ON audit_log"))
        await tx.write(text(statement))


async def test_entries_are_numbered_without_a_gap_and_verified(ctx: AppContext) -> None:
    assert (await verify(ctx.db)).fault is None
    await add(ctx, "1", "2")
    async with ctx.db.transaction() as tx:
        await entries.record(tx, Act(AWA, "mode.closed", "mode", "mtn"), ctx.clock.now())
    done = await verify(ctx.db)
    assert (done.entries, done.fault, done.head) == (3, None, (await entries.head(ctx.db))[1])
    assert (await verify(ctx.db, known(done.head))).fault is None
    newest, *_ = await entries.latest(ctx.db)
    assert (newest.number, newest.action, newest.actor, newest.os_user) == (3, "mode.closed", "Awa [bold]", "awa")
    (about,) = await entries.about(ctx.db, "2")
    assert (about.before, about.after, about.reason) == ('{"status":"active"}', '{"note":"é"}', "lost")


async def test_an_act_that_is_rolled_back_leaves_no_entry(ctx: AppContext) -> None:
    await add(ctx, "1")
    with suppress(RuntimeError):
        async with ctx.db.transaction() as tx:
            await entries.record(tx, Act(AWA, "x", "key", "2"), ctx.clock.now())
            raise RuntimeError
    await add(ctx, "3")
    assert [each.subject for each in await entries.latest(ctx.db)] == ["3", "1"]
    assert (await verify(ctx.db)).fault is None


async def test_acts_at_the_same_time_follow_one_another(ctx: AppContext) -> None:
    await asyncio.gather(*(add(ctx, str(number)) for number in range(20)))
    done = await verify(ctx.db)
    assert (done.entries, done.fault) == (20, None)


@pytest.mark.parametrize("change", ["UPDATE audit_log SET actor = 'Zoé'", "DELETE FROM audit_log"])
async def test_the_database_refuses_to_change_an_entry(ctx: AppContext, change: str) -> None:
    await add(ctx, "1")
    with pytest.raises(StorageError):
        async with ctx.db.transaction() as tx:
            await tx.write(text(change))
    assert len(await entries.latest(ctx.db)) == 1


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("UPDATE audit_log SET actor = 'Zoé' WHERE number = 2", "Entry 2 was changed"),
        ("UPDATE audit_log SET at = at + 1 WHERE number = 3", "Entry 3 was changed"),
        ("DELETE FROM audit_log WHERE number = 2", "Entry 2 is missing"),
        ("DELETE FROM audit_log WHERE number = 3", "the log once had 3"),
    ],
)
async def test_a_change_behind_the_triggers_is_found(ctx: AppContext, change: str, fault: str) -> None:
    await add(ctx, "1", "2", "3")
    await without_triggers(ctx, change)
    assert fault in str((await verify(ctx.db)).fault)


async def test_a_log_that_was_rewritten_as_a_whole_does_not_contain_the_known_digest(ctx: AppContext) -> None:
    await add(ctx, "1", "2")
    head = (await verify(ctx.db)).head
    await without_triggers(ctx, "DELETE FROM audit_log")
    async with ctx.db.transaction() as tx:
        await tx.write(text(f"UPDATE audit_log_head SET number = 0, digest = '{'0' * 64}'"))
    await add(ctx, "1", "2")
    assert (await verify(ctx.db)).fault is None
    assert "rewritten" in str((await verify(ctx.db, known(head))).fault)
