"""Whose account a key leads to: the provider says it, or two people do. Until then nothing is sent again, and "not
found" proves nothing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from guichet.accounts import approvals
from guichet.db.engine import require
from guichet.domain.approvals import ActRequest
from guichet.domain.audit_log import ActRefused
from guichet.domain.ids import ApprovalId
from guichet.incidents import repository as incidents
from guichet.providers.base import NotFound, Refused, Unknown
from guichet.refunds import repository as refund_repository
from guichet.settings import Settings
from tests.approving import approver, ask, ask_and_approve
from tests.fakes.keyed_provider import KeyedProvider
from tests.fakes.scripted_provider import ScriptedProvider, done
from tests.payments.conftest import LivePayments
from tests.payments.test_refunds import paid, refund_of
from tests.service_fixture import open_service

DAY = 24 * 3600
HOURS = (600, 600, 600, 3600, 3600)


@dataclass
class Restarted:
    """A service that is stopped and started again, with the same accounts."""

    settings: Settings
    first: KeyedProvider
    second: ScriptedProvider
    live: LivePayments | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[LivePayments]:
        accounts = {"first": self.first, "second": self.second}
        routes = {"mtn": ["first"]}
        clock = self.live.service.clock if self.live else None
        async with open_service(self.settings, clock, accounts=accounts, routes=routes) as service:
            merchant = (await service.merchant()).live if self.live is None else self.live.merchant
            merchant.service = service
            self.live = LivePayments(service, merchant, self.first, self.second)
            yield self.live


@pytest.fixture
def restarted(settings: Settings) -> Restarted:
    return Restarted(settings, KeyedProvider(), ScriptedProvider())


async def lost_refund(restarted: Restarted) -> Any:
    """A refund whose answer was lost, and the service is stopped then."""
    async with restarted.running() as live:
        restarted.first.script("refund", Unknown())
        refund = await refund_of(live, await paid(live))
        await live.service.run_worker()
        assert len(restarted.first.references_of("refund")) == 1
    return refund


async def wait(live: LivePayments) -> None:
    for seconds in HOURS:
        await live.service.run_worker(seconds)


async def status_of(live: LivePayments, refund: Any) -> str:
    return require(await refund_repository.find(live.ctx.db, refund["reference"])).status


async def open_incidents(live: LivePayments) -> list[str]:
    return [each.kind for each in await incidents.still_open(live.ctx.db)]


def asked_only(restarted: Restarted) -> set[bool]:
    return {each.ask_only for each in restarted.first.questions}


async def test_a_renewed_key_of_the_same_account_changes_nothing(restarted: Restarted) -> None:
    refund = await lost_refund(restarted)
    restarted.first.fingerprint = "2:address:key-2"
    restarted.first.questions.clear()
    restarted.first.script("refund_status", done)
    async with restarted.running() as live:
        await wait(live)
        assert await status_of(live, refund) == "succeeded"
        assert asked_only(restarted) == {False}
        assert await open_incidents(live) == []


async def test_a_key_of_another_account_is_not_asked(restarted: Restarted) -> None:
    refund = await lost_refund(restarted)
    restarted.first.fingerprint, restarted.first.identity = "2:address:key-2", "acct_2"
    restarted.first.questions.clear()
    restarted.first.script("refund_status", NotFound(), Refused("refused"))
    async with restarted.running() as live:
        await wait(live)
        assert await status_of(live, refund) == "pending"
        assert restarted.first.questions == []
        assert await open_incidents(live) == ["account_changed"]


async def test_another_address_is_another_account_whatever_the_provider_says(restarted: Restarted) -> None:
    refund = await lost_refund(restarted)
    restarted.first.fingerprint = "2:elsewhere:key-1"
    restarted.first.questions.clear()
    async with restarted.running() as live:
        await wait(live)
        assert (await status_of(live, refund), restarted.first.questions) == ("pending", [])


async def test_while_the_identity_is_unknown_nothing_is_sent_again_or_concluded(restarted: Restarted) -> None:
    """The key is the same one, but the provider has never said whose it is. The refund is a payout."""
    restarted.first.identity, restarted.first.own_refunds = Unknown(), False
    refund = await lost_refund(restarted)
    restarted.first.questions.clear()
    restarted.first.script("refund_status", NotFound())
    restarted.first.script("status", NotFound())
    async with restarted.running() as live:
        payment = await live.merchant.pay()
        await wait(live)
        assert (await status_of(live, refund), await live.state(payment["reference"])) == ("pending", "pending")
        assert asked_only(restarted) == {True}
        assert await open_incidents(live) == [], "nobody has anything to decide"

        restarted.first.identity = "acct_1"
        restarted.first.questions.clear()
        await wait(live)
        assert False in asked_only(restarted)


async def test_an_explicit_answer_counts_while_the_identity_is_unknown(restarted: Restarted) -> None:
    restarted.first.identity, restarted.first.own_refunds = Unknown(), False
    refund = await lost_refund(restarted)
    restarted.first.script("refund_status", done)
    async with restarted.running() as live:
        await wait(live)
        assert await status_of(live, refund) == "succeeded"


async def test_a_new_refund_waits_while_the_identity_of_the_account_that_collected_is_unknown(
    restarted: Restarted,
) -> None:
    """The account would say that it does not know the payment, and the refund would fail."""
    restarted.first.identity = Unknown()
    restarted.first.script("refund", done)
    async with restarted.running() as live:
        refund = await refund_of(live, await paid(live))
        await live.service.run_worker()
        assert restarted.first.references_of("refund") == []
        restarted.first.identity = "acct_1"
        await wait(live)
        assert await status_of(live, refund) == "succeeded"


async def test_the_provider_is_asked_at_the_first_use_and_daily(restarted: Restarted) -> None:
    async with restarted.running() as live:
        assert restarted.first.reads == 0, "the start is not held up"
        await live.merchant.pay()
        await wait(live)
        assert restarted.first.reads == 1
        await live.service.run_worker(DAY)
        await live.service.run_worker(3600)
        assert restarted.first.reads == 2
    async with restarted.running() as live:
        assert restarted.first.reads == 2
        await live.service.run_worker(DAY)
        assert restarted.first.reads == 3


async def test_another_identity_of_the_same_key_is_decided_by_two_people(restarted: Restarted) -> None:
    async with restarted.running() as live:
        payment = await live.merchant.pay()
        await live.service.run_worker(5)
        restarted.first.identity = "a company with another name"
        restarted.first.script("status", NotFound())
        restarted.first.questions.clear()
        await live.service.run_worker(DAY)
        await wait(live)
        assert await live.state(payment["reference"]) == "pending"
        assert asked_only(restarted) == {True}
        assert await open_incidents(live) == ["account_changed"]
        await ask_and_approve(live.ctx, ActRequest("account.confirm", payment["reference"], {}, "it was renamed"))
        restarted.first.script("status", done)
        restarted.first.questions.clear()
        await live.service.run_worker(DAY)
        assert asked_only(restarted) == {False}
        assert await live.state(payment["reference"]) == "succeeded"
        assert await open_incidents(live) == []


async def test_two_people_confirm_all_that_was_sent_under_earlier_keys(restarted: Restarted) -> None:
    """The provider publishes no identity. Two keys are renewed, one after the other."""
    restarted.first.identity = None
    first = await lost_refund(restarted)
    restarted.first.fingerprint = "2:address:key-2"
    restarted.first.script("refund_status", NotFound())
    async with restarted.running() as live:
        await ask_and_approve(live.ctx, ActRequest("account.confirm", first["reference"], {}, "renewed"))
        second = await live.merchant.pay()
    restarted.first.fingerprint = "2:address:key-3"
    restarted.first.questions.clear()
    async with restarted.running() as live:
        await wait(live)
        assert asked_only(restarted) == {True}
        await ask_and_approve(live.ctx, ActRequest("account.confirm", second["reference"], {}, "renewed again"))
        restarted.first.script("refund_status", done)
        restarted.first.script("status", done)
        restarted.first.questions.clear()
        await live.service.run_worker(DAY)
        assert asked_only(restarted) == {False}
        assert await status_of(live, first) == "succeeded"
        assert await live.state(second["reference"]) == "succeeded"


async def test_an_account_that_cannot_be_confirmed(restarted: Restarted) -> None:
    restarted.first.identity = Unknown()
    async with restarted.running() as live:
        payment = await live.merchant.pay()
        wanted = ActRequest("account.confirm", payment["reference"], {}, "renewed")
        with pytest.raises(ActRefused, match="has not said yet"):
            await ask_and_approve(live.ctx, wanted)
        restarted.first.identity = None
        restarted.first.fingerprint = "2:address:key-2"
        live.ctx.identity_due.clear()
        request = ApprovalId(1)
        with pytest.raises(ActRefused, match="were changed since"):
            await approvals.approve(live.ctx, request, await approver(live.ctx), "seen")
        await approvals.refuse(live.ctx, request, await approver(live.ctx), "again")
        restarted.first.fingerprint = "2:elsewhere:key-1"
        with pytest.raises(ActRefused, match="The settings name"):
            await ask(live.ctx, wanted)
        nobody = ActRequest("account.confirm", "5f0c7a10-6a54-4a8e-9d0e-2f9f6d1f6a01", {}, "renewed")
        with pytest.raises(ActRefused, match="no refund"):
            await ask(live.ctx, nobody)
