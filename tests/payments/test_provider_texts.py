"""What a provider writes can harm neither its own payment nor those that are settled with it."""

import asyncio
from typing import Any

import pytest

from guichet.providers.base import Charge, Succeeded
from tests.fakes.scripted_provider import done
from tests.payments.conftest import LivePayments

pytestmark = pytest.mark.both_databases

#: What a bug in a provider's module might let through; the modules themselves clean what they read.
BAD_REFERENCES = ["a\0b", "a\ud800b"]


@pytest.mark.parametrize("bad", BAD_REFERENCES, ids=["NUL", "half of a surrogate pair"])
async def test_one_bad_reference_in_a_batch_of_settlements_fails_alone(live: LivePayments, bad: str) -> None:
    paid = [await live.merchant.pay() for _ in range(6)]
    hostile = paid[3]["reference"]

    def answer(charge: Charge) -> Succeeded:
        return (
            Succeeded(charge.amount, charge.payment.currency, bad)
            if charge.payment.reference == hostile
            else done(charge)
        )

    live.first.script("status", answer)
    together: list[Any] = await asyncio.gather(*(live.merchant.get(f"/payments/{each['reference']}") for each in paid))
    good = [each for each, payment in zip(together, paid, strict=True) if payment["reference"] != hostile]
    assert [(each.status, each.data["status"]) for each in good] == [(200, "succeeded")] * 5
    if await live.state(hostile) == "pending":  # SQLite stores a NUL.
        assert (together[3].status, together[3].data["status"]) == (200, "pending")
        live.first.script("status", done)
        await live.service.run_worker(60)
        assert await live.state(hostile) == "succeeded"
