"""The staff of a trial: freeze and reopen wallets, decide about late money, confirm who paid, end what only people can.

They act in this process, through the functions behind `guichet wallet`, `guichet late-money`, `guichet refund` and
`guichet payment`, while the servers are killed.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from guichet.audit_log import entries as audit_log
from guichet.back_office import manual_settlement
from guichet.bootstrap import service
from guichet.context import AppContext
from guichet.db.errors import StorageError
from guichet.domain.audit_log import Act, Actor, ActRefused
from guichet.domain.ids import MerchantId
from guichet.domain.late_results import LateResult
from guichet.domain.payments import Payment, Refund
from guichet.domain.posting_rules import ACTIVE, FROZEN, WalletStatus
from guichet.incidents import repository as incidents
from guichet.late_money import decisions as late_decisions
from guichet.late_money import repository as late_results
from guichet.late_money import return_repository
from guichet.late_money import returns as late_returns
from guichet.late_money.decisions import Decision
from guichet.ledger import wallets
from guichet.payments import repository
from guichet.refunds import payee
from guichet.refunds import repository as refund_repository
from reliability.installation import Installation
from reliability.merchant import Merchant

_ACTOR: Final = Actor("Awa", "trial")
_EVIDENCE: Final = "the provider's statement"


@dataclass
class Staff:
    installation: Installation
    merchants: list[Merchant]
    seed: int
    interval: float = 2.0
    #: What people in the console do instead while traffic flows: they freeze and reopen the wallets, and decide about
    #: the late results of these references.
    left_to_console: Callable[[str], bool] | None = None
    counts: Counter[str] = field(default_factory=Counter)

    async def run(self, until: Callable[[], bool]) -> None:
        """Acts every now and then. Ends with every wallet open again."""
        drawn = random.Random(f"{self.seed}/staff")
        while not until():
            await asyncio.sleep(drawn.uniform(0.5, 1.5) * self.interval)
            if self.left_to_console is not None:
                await self._acting(lambda ctx: self._decide_late_money(ctx, drawn, self.left_to_console))
                await self._acting(self._confirm_payees)
            elif drawn.random() < 0.3:
                merchant = drawn.choice(self.merchants).id
                await self._acting(lambda ctx, merchant=merchant: self._set_status(ctx, merchant, FROZEN))  # type: ignore[misc]
                await asyncio.sleep(drawn.uniform(0.2, 2.0))
                await self._reopen(merchant)
            else:
                await self.decide(drawn)
        if self.left_to_console is None:
            for each in self.merchants:
                await self._reopen(each.id)

    async def decide(self, drawn: random.Random) -> None:
        """Decides about all late money that is open, and confirms all payees that are asked for."""
        await self._acting(lambda ctx: self._decide_late_money(ctx, drawn))
        await self._acting(self._confirm_payees)

    async def end(self, decisions: Iterable[tuple[Payment | Refund, bool]]) -> None:
        """Ends pending payments and refunds as the provider's statement says: whether each succeeded."""

        async def work(ctx: AppContext) -> None:
            for subject, succeeded in decisions:
                decision = manual_settlement.Decision(succeeded, _EVIDENCE, _ACTOR)
                current = (
                    await repository.by_id(ctx.db, subject.id)
                    if isinstance(subject, Payment)
                    else await refund_repository.by_id(ctx.db, subject.id)
                )
                if current is not None and current.status == "pending":
                    await self._unless_refused(
                        "ended by hand", manual_settlement.settle_by_hand(ctx, current, decision)
                    )

        await self._acting(work)

    async def _acting(self, work: Callable[[AppContext], Awaitable[None]]) -> bool:
        """False when the database was away: people try again later."""
        installation = self.installation
        try:
            async with service(installation.settings, providers=installation.providers) as opened:
                await work(opened.ctx)
        except (StorageError, OSError):
            self.counts["database away"] += 1
            return False
        return True

    async def _unless_refused(self, what: str, act: Awaitable[object]) -> None:
        try:
            await act
            self.counts[what] += 1
        except ActRefused:
            self.counts[f"{what}: refused"] += 1

    async def _reopen(self, merchant: MerchantId) -> None:
        while not await self._acting(lambda ctx: self._set_status(ctx, merchant, ACTIVE)):
            await asyncio.sleep(0.5)

    async def _set_status(self, ctx: AppContext, merchant: MerchantId, status: WalletStatus) -> None:
        now = ctx.clock.now()
        act = Act(_ACTOR, "wallet.status_changed", "wallet", "XOF", merchant, after={"status": status})
        async with ctx.db.transaction() as tx:
            await wallets.set_wallet_status(tx, merchant, "live", "XOF", status, now)
            await audit_log.record(tx, act, now)
        self.counts[f"wallet {status}"] += 1

    async def _decide_late_money(
        self, ctx: AppContext, drawn: random.Random, left: Callable[[str], bool] | None = None
    ) -> None:
        for late in await late_results.still_open(ctx.db):
            if left is not None and left(late.reference):
                continue
            decision: Decision = "paid-elsewhere" if late.stage == "receivable" else "wallet"
            if late.subject_type == "payment" and drawn.random() < 0.5:
                decision = "payer"

            async def act(late: LateResult = late, decision: Decision = decision) -> None:
                resolved = await late_decisions.resolve(ctx, late, decision, _ACTOR, _EVIDENCE)
                for each in await return_repository.of(ctx.db, resolved):
                    if each.reference == resolved.return_reference:
                        await late_returns.work(ctx, each)

            await self._unless_refused(f"late money: {decision}", act())

    async def _confirm_payees(self, ctx: AppContext) -> None:
        for incident in await incidents.still_open(ctx.db):
            if incident.kind != incidents.PAYEE_UNCONFIRMED:
                continue
            refund = await refund_repository.find(ctx.db, incident.reference)
            payment = await repository.by_id(ctx.db, refund.payment_id) if refund else None
            if refund is None or payment is None or payment.phone_number is None:
                continue
            act = payee.confirm(ctx, refund, payment.phone_number, _ACTOR, _EVIDENCE)
            await self._unless_refused("payee confirmed", act)
