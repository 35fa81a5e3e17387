"""Transactions on both databases: all or nothing, and alone."""

import asyncio

import pytest
from sqlalchemy import Integer, Text, bindparam, func, insert, select, update

from guichet.db.engine import Database
from guichet.db.errors import ConstraintViolated
from guichet.db.tables import payment_links
from tests.db.merchant_rows import ADD, NAMES, add, names


class Oops(Exception):
    pass


async def test_committed_rows_exist_and_failed_ones_do_not(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.write(ADD.values(name="kept"))
        assert [row[0] for row in await tx.all(NAMES)] == ["kept"], "a transaction sees its own writes"
        assert await db.all(NAMES) == [], "no other connection sees it"
    with pytest.raises(Oops):  # noqa: PT012 - the body raises after writing
        async with db.transaction() as tx:
            await tx.write(ADD.values(name="lost"))
            raise Oops
    assert await names(db) == ["kept"]


async def test_a_cancelled_transaction_leaves_nothing(db: Database) -> None:
    with pytest.raises(asyncio.CancelledError):  # noqa: PT012
        async with db.transaction() as tx:
            await tx.write(ADD.values(name="lost"))
            raise asyncio.CancelledError
    await add(db, "after")
    assert await names(db) == ["after"]


async def test_a_constraint_rolls_back_what_was_written_before_it(db: Database) -> None:
    with pytest.raises(ConstraintViolated):  # noqa: PT012
        async with db.transaction() as tx:
            await tx.write(ADD.values(name="lost"))
            await tx.write(ADD.values(name="worse", status="closed"))
    assert await names(db) == []


async def test_a_failing_transaction_among_many_fails_alone(db: Database) -> None:
    async def one(number: int) -> None:
        async with db.transaction() as tx:
            await tx.write(ADD.values(name=str(number)))
            if number % 7 == 3:
                raise Oops

    outcomes = await asyncio.gather(*(one(number) for number in range(40)), return_exceptions=True)
    assert [isinstance(each, Oops) for each in outcomes] == [number % 7 == 3 for number in range(40)]
    assert sorted(await names(db)) == sorted(str(number) for number in range(40) if number % 7 != 3)


LINK = {"merchant_id": 1, "type": "permanent", "amount": 1, "currency": "XOF", "completed_uses": 0, "created_at": 1}


LINKS = insert(payment_links).values(
    {name: bindparam(name) for name in (*LINK, "token", "description", "max_uses", "reserved_uses")}
)


USED = (
    update(payment_links)
    .where(payment_links.c.token == bindparam("whose"), payment_links.c.reserved_uses < 5)
    .values(
        reserved_uses=payment_links.c.reserved_uses + bindparam("uses", type_=Integer),
        description=func.coalesce(bindparam("text", type_=Text), payment_links.c.description),
        max_uses=7,
    )
    .returning(payment_links.c.token, payment_links.c.reserved_uses, payment_links.c.description)
)


async def test_many_rows_are_written_as_if_one_by_one(db: Database) -> None:
    await add(db, "one")
    tokens = [f"t{(7 * number) % 20}" for number in range(20)]
    new = [
        {
            **LINK,
            "token": token,
            "description": f"« {token} »\n'\"{{}},\\",
            "max_uses": place or None,
            "reserved_uses": place,
        }
        for place, token in enumerate(tokens)
    ]
    await db.write_many(LINKS, new)
    kept = select(payment_links.c.token, payment_links.c.description, payment_links.c.max_uses)
    stored = [tuple(row) for row in await db.all(kept.order_by(payment_links.c.id))]
    assert stored == [(row["token"], row["description"], row["max_uses"]) for row in new], "in their order"
    async with db.transaction() as tx:
        await tx.write_many(LINKS, [])
        assert await tx.write_many(USED, []) == []
        wanted = [("t14", 3, None), ("t15", 1, None), ("nobody", 1, None), ("t0", 2, "changed")]
        changed = await tx.write_many(USED, [{"whose": who, "uses": uses, "text": text} for who, uses, text in wanted])
    # The second has no use left, the third is not there.
    assert sorted(map(tuple, changed)) == [("t0", 2, "changed"), ("t14", 5, new[2]["description"])]
    with pytest.raises(ConstraintViolated, match="uq_payment_links_token"):
        await db.write_many(LINKS, [{**new[0], "token": "new"}, new[1]])
    assert len(await db.all(kept)) == 20, "all or none"


async def test_an_id_is_never_given_twice(db: Database) -> None:
    """Not even the number of a row that was rolled back at the top (D28)."""
    given = []
    with pytest.raises(Oops):  # noqa: PT012
        async with db.transaction() as tx:
            given.append((await tx.write(ADD.values(name="lost")) or [0])[0])
            raise Oops
    for name in ("a", "b"):
        given.append((await db.write(ADD.values(name=name)) or [0])[0])
    assert given[1] < given[2]
    assert all(number > 0 for number in given)
