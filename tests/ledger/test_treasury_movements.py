"""Movements of our own money that people record (docs/admin-guide.md, "Our own money")."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from guichet.accounts import approvals
from guichet.db.tables import postings
from guichet.domain.approvals import ActRequest
from guichet.domain.audit_log import Actor, ActRefused
from guichet.domain.treasury import TreasuryMovement
from guichet.ledger.audit import audit
from guichet.merchants import repository as merchants
from guichet.settings import Settings
from guichet.treasury import movements, repository
from tests.approving import ask_and_approve, join_staff
from tests.fakes.scripted_provider import ScriptedProvider
from tests.service_fixture import ServiceFixture, open_service

ACTOR = Actor("awa@example.com", "console")
NUMBERS = [f"01a202b1-10b7-453a-868b-cad7dfa87e{number:02d}" for number in range(10)]


async def posted(service: ServiceFixture) -> dict[str, int]:
    held: dict[str, int] = {}
    for source, to, amount in await service.ctx.db.scan(
        select(postings.c.source, postings.c.destination, postings.c.amount)
    ):
        held[source], held[to] = held.get(source, 0) + amount, held.get(to, 0) - amount
    return {name: amount for name, amount in held.items() if amount}


async def record(service: ServiceFixture, number: int = 0, **arguments: Any) -> TreasuryMovement:
    """As a person would who may do it alone."""
    facts = {
        "kind": "transfer",
        "currency": "XOF",
        "amount": 1000_00,
        **{name.rstrip("_"): each for name, each in arguments.items()},
    }
    movement = movements.requested_movement(service.ctx, NUMBERS[number], facts)  # type: ignore[arg-type]
    return await movements.record(service.ctx, movement, ACTOR, "statement 12")


async def test_each_kind_posts_what_it_moved_for_the_house_merchant(settings: Settings) -> None:
    async with open_service(settings, accounts={"op": ScriptedProvider()}, routes={"mtn": ["op"]}) as service:
        await record(service, 0, kind="opening", to="op:main", amount=5000_00)
        await record(service, 1, kind="top_up", to="bank:eco", amount=900_00)
        await record(service, 2, to="bank:eco", from_="op:main")
        await record(service, 3, kind="fee", amount=5_00, from_="op:main")
        last = await record(service, 4, kind="withdrawal", amount=100_00, from_="bank:eco")
        assert await posted(service) == {
            "float:op:main:XOF": 3995_00,
            "bank:eco:XOF": 1800_00,
            "own_funds": -5800_00,
            "provider_fees": 5_00,
        }
        assert last.merchant_id == await merchants.house_merchant_id(service.ctx.db)
        assert (await audit(service.ctx.db, service.ctx.clock, lambda text: None)).fault is None


async def test_an_announced_transfer_is_posted_when_it_arrived(settings: Settings) -> None:
    async with open_service(settings, accounts={"op": ScriptedProvider()}, routes={"mtn": ["op"]}) as service:
        sent = await record(service, announced=True, to="bank:eco", from_="op")
        lost = await record(service, 1, announced=True, to="bank:eco", from_="op")
        assert await posted(service) == {}
        recorded = await repository.latest(service.ctx.db)
        assert [each.reference for each in recorded if each.status == "announced"] == NUMBERS[1::-1]
        await movements.end(service.ctx, sent.reference, "posted", ACTOR, "bank statement")
        await movements.end(service.ctx, lost.reference, "cancelled", ACTOR, "came back")
        for each in (sent, lost):
            with pytest.raises(ActRefused, match="is announced"):
                await movements.end(service.ctx, each.reference, "posted", ACTOR, "again")
        assert await posted(service) == {"float:op::XOF": -1000_00, "bank:eco:XOF": 1000_00}
        assert (await audit(service.ctx.db, service.ctx.clock, lambda text: None)).fault is None


@pytest.mark.parametrize(
    "arguments",
    [
        {"kind": "gift", "to": "op"},
        {"currency": "GBP", "from": "op", "to": "bank:eco"},
        {"from": "op"},
        {"from": "op", "to": "op"},
        {"kind": "opening", "from": "op"},
        {"kind": "fee", "from": "op", "to": "bank:eco"},
        {"kind": "opening", "to": "op", "announced": True},
        {"kind": "opening", "to": "other"},
        {"kind": "opening", "to": "sandbox"},
        {"kind": "opening", "to": "bank:Eco Bank"},
        {"kind": "opening", "to": "op", "amount": 0},
    ],
)
async def test_what_is_no_movement_is_refused(sqlite_settings: Settings, arguments: dict[str, Any]) -> None:
    async with open_service(sqlite_settings, accounts={"op": ScriptedProvider()}, routes={}) as service:
        with pytest.raises(ActRefused):
            await record(service, **arguments)
        assert await repository.latest(service.ctx.db) == []


async def test_two_people_record_it_once(settings: Settings) -> None:
    async with open_service(settings, accounts={"op": ScriptedProvider()}, routes={"mtn": ["op"]}) as service:
        facts = {"kind": "opening", "to": "op", "currency": "XOF", "amount": 7_00}
        await ask_and_approve(service.ctx, ActRequest("treasury.record", NUMBERS[0], facts, "statement"))  # type: ignore[arg-type]
        assert await posted(service) == {"float:op::XOF": 7_00, "own_funds": -7_00}
        [one] = await repository.latest(service.ctx.db)
        assert (one.reference, one.kind, one.status) == (NUMBERS[0], "opening", "posted")


async def test_one_person_records_what_is_small(sqlite_settings: Settings) -> None:
    settings = replace(sqlite_settings, treasury_one_person_below=10)
    async with open_service(settings, accounts={"op": ScriptedProvider()}, routes={"mtn": ["op"]}) as service:
        awa = await join_staff(service.ctx, "awa@example.com")
        facts: Any = {"kind": "opening", "to": "op", "currency": "XOF", "amount": 10_00}
        await approvals.do_alone(service.ctx, ActRequest("treasury.record", NUMBERS[0], facts, "statement"), awa, "awa")
        assert await posted(service) == {"float:op::XOF": 10_00, "own_funds": -10_00}
        refused: list[Any] = [{"amount": 10_01}, {"kind": "statement"}]
        for more in refused:
            wanted = ActRequest("treasury.record", NUMBERS[1], {**facts, **more}, "statement")
            with pytest.raises(ActRefused):
                await approvals.do_alone(service.ctx, wanted, awa, "awa")
        again = ActRequest("treasury.record", NUMBERS[0], facts, "statement")
        with pytest.raises(ActRefused, match="just decided"):
            await approvals.do_alone(service.ctx, again, awa, "awa")
        assert len(await repository.latest(service.ctx.db)) == 1


async def test_the_audit_finds_a_movement_that_was_changed(settings: Settings, raw_sql: Any) -> None:
    async with open_service(settings, accounts={"op": ScriptedProvider()}, routes={"mtn": ["op"]}) as service:
        await record(service, kind="opening", to="op")
        await raw_sql.run("UPDATE treasury_movements SET amount = amount + 1")
        fault = (await audit(service.ctx.db, service.ctx.clock, lambda text: None)).fault
        assert NUMBERS[0] in str(fault)
