"""What must hold after forms that may act: live money is where it was, sessions are open or ended as they should be."""

from typing import Any, Final

from sqlalchemy import select

from guichet.context import AppContext
from guichet.db.tables import postings, refunds
from guichet.domain.payments import Refund
from guichet.domain.posting_rules import HOLD
from reliability.fuzz.console.cast import Cast
from reliability.fuzz.recorded import wire
from reliability.fuzz.sockets import Connection

_LIVE: Final = select(postings).where(postings.c.env == "live")


async def live_postings(ctx: AppContext) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in await ctx.db.scan(_LIVE)}


async def moved_money(ctx: AppContext, own: int, before: set[tuple[Any, ...]]) -> list[str]:
    """Live money that moved since `before`, but for what the refunds of the merchant `own` hold."""
    names = [column.name for column in postings.c]
    new = [dict(zip(names, row, strict=True)) for row in await live_postings(ctx) - before]
    holds = {each["subject_id"] for each in new if (each["merchant_id"], each["destination"]) == (own, HOLD)}
    asked = [Refund(*row) for row in await ctx.db.scan(select(refunds))]
    by_people = {each.id for each in asked if each.merchant_id == own}
    return [f"live money has moved: {each}" for each in new if each["subject_id"] not in holds & by_people]


async def wrong_sessions(port: int, cast: Cast) -> list[str]:
    """Whose session does not open a page any more, although nobody ended it; and which opens one although it ended."""
    connection, faults = Connection(port), []
    for person, status in (*((each, 200) for each in cast.people.values()), (cast.ended, 303), (cast.half, 303)):
        answer = await connection.ask(wire("", "GET", "/console/security", [person.header]).raw, "GET")
        if answer.status != status:
            faults.append(f"the session of {person.name} answers {answer.status} instead of {status}")
    await connection.close()
    return faults
