"""The real flows and the real worker against a shadow ledger, driven at random (docs/architecture.md, "Invariants").

Whatever happens, in whatever order: the providers' books, the merchant's wallet and the webhooks say the same.
"""

import asyncio
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from guichet.bootstrap import service
from guichet.clock import SECOND, later
from guichet.db.lists.pages import PageBounds
from guichet.db.queues.fair_share import Shares
from guichet.domain.errors import Conflict
from guichet.domain.merchants import ENVS, Environment
from guichet.domain.money import Currency, Hundredths, round_to_currency
from guichet.domain.posting_rules import WALLET_STATUSES, WalletStatus
from guichet.payments import pending
from guichet.payments.settlement import settle_payment
from guichet.providers.base import Refused, Succeeded
from guichet.refunds import pending as pending_refunds
from guichet.refunds import repository as refunds
from guichet.refunds.disbursement import poll_refund
from guichet.refunds.repository import RefundFilter
from guichet.refunds.request import request_refund
from guichet.settings import Settings
from guichet.webhooks import deliveries
from tests.invariants import check_books
from tests.property.money_machine import MoneyMachineSetup, SharedSetup

REQUEST_MODES = ("", "lost before", "lost after", "refuse", "not taken")
STATUS_MODES = ("", "silent", "wrong")


class MoneyMachine(MoneyMachineSetup):
    made = Bundle("made")

    # --- what people and providers do ---------------------------------------------------------------------------------

    @initialize(target=made, amount=st.integers(10, 900_000))
    def a_first_payment(self, amount: int) -> str:
        return self._paid(amount, "XOF")

    @rule(
        target=made,
        env=st.sampled_from(ENVS),
        amount=st.integers(10, 900_000),
        currency=st.sampled_from(["XOF", "XOF", "EUR"]),
        operator=st.sampled_from(["mtn", "mtn", "moov"]),
        ending=st.sampled_from(["0000", "0003", "1234"]),
        mood=st.sampled_from(REQUEST_MODES),
    )
    def a_customer_starts_to_pay(
        self, env: Environment, amount: int, currency: Currency, operator: str, ending: str, mood: str
    ) -> str:
        return self._pay(env, amount, currency, operator, ending, mood)

    @rule(reference=made, validates=st.booleans())
    def the_customer_answers(self, reference: str, validates: bool) -> None:
        """Once: a provider does not change its answer."""
        self.decisions.setdefault(reference, validates)

    @rule(verb=st.sampled_from(["status", "refund_status"]), mood=st.sampled_from(STATUS_MODES))
    def a_provider_changes_its_answers(self, verb: str, mood: str) -> None:
        self.answer_modes[verb] = mood

    @rule(target=made, amount=st.integers(10, 900_000), currency=st.sampled_from(["XOF", "EUR"]))
    def a_customer_pays_without_trouble(self, amount: int, currency: Currency) -> str:
        return self._paid(amount, currency)

    @rule(target=made, amount=st.integers(10, 900_000))
    def a_provider_states_another_amount(self, amount: int) -> str:
        reference = self._paid(amount, "XOF", stated="wrong")
        stored = self._payment(reference)
        assert stored is None or stored.status == "pending"
        return reference

    @rule(target=made, amount=st.integers(10, 900_000), status=st.sampled_from(["Gelé", "Fermé"]))
    def a_wallet_is_frozen_while_a_customer_pays(self, amount: int, status: WalletStatus) -> str:
        reference = self._pay("live", amount)
        self._set_wallet(status)
        before = self._balance("XOF")
        self.decisions.setdefault(reference, True)
        self.answer_modes["status"] = ""
        self._read(reference)
        assert self._balance("XOF") == before, "a frozen wallet takes nothing"
        return reference

    @rule(reference=made)
    def the_merchant_reads(self, reference: str) -> None:
        self._read(reference)

    @rule(reference=made, goes=st.sampled_from(["", *REQUEST_MODES]), arrives=st.booleans(), at_once=st.booleans())
    def the_merchant_refunds(self, reference: str, goes: str, arrives: bool, at_once: bool) -> None:
        row = self._payment(reference)
        if row is None:
            return
        try:
            requested = self.run(request_refund(self.ctx, row, None))
        except Conflict:
            return
        assert row.status == "succeeded"
        assert row.env == "test" or self.wallet_status == "Actif" or row.currency != "XOF"
        self.decisions.setdefault(requested.reference, arrives)
        self.answer_modes["refund"] = goes
        if at_once:
            self.answer_modes["refund_status"] = ""
            for seconds in (0, 6):
                self._pass(seconds)

    @rule(reference=made)
    def the_merchant_reads_a_refund(self, reference: str) -> None:
        row = self._payment(reference)
        mine = self.run(
            refunds.page(self.db, self.callers["live"].merchant.id, "live", RefundFilter(), PageBounds(100))
        )[0]
        for refund in mine:
            if row is not None and refund.payment_id == row.id:
                self.run(poll_refund(self.ctx, refund))

    @rule(reference=made, success=st.booleans())
    def a_late_answer_about_a_final_payment(self, reference: str, success: bool) -> None:
        row = self._payment(reference)
        if row is None or row.status == "pending":
            return
        late = Succeeded(Hundredths(row.total_amount), row.currency) if success else Refused("expired")
        assert self.run(settle_payment(self.ctx, row, late)) == row

    @rule(status=st.sampled_from(WALLET_STATUSES))
    def the_wallet_becomes(self, status: WalletStatus) -> None:
        self._set_wallet(status)

    @rule(well=st.booleans())
    def the_receiver_is(self, well: bool) -> None:
        self.receiver_is_well = well

    @rule(seconds=st.sampled_from([0, 1, 5, 10, 31, 60, 300, 1800, 3600, 90_000]))
    def time_passes(self, seconds: int) -> None:
        self._pass(seconds)

    @rule()
    def a_worker_dies_with_its_claims(self) -> None:
        async def claim() -> None:
            now = self.clock.now()
            lease_end = later(now, 30 * SECOND)
            await deliveries.delivery_queue().claim(self.db, now, lease_end, 3, Shares({}, 3, [], 0))
            await pending.QUEUE.claim(self.db, now, lease_end, 3)
            await pending_refunds.QUEUE.claim(self.db, now, lease_end, 3)

        self.run(claim())

    # --- what must be true, always ------------------------------------------------------------------------------------

    @invariant()
    def the_books_are_clean(self) -> None:
        self.run(check_books(self.db, events_queued=True))

    @invariant()
    def the_shadow_ledger_agrees(self) -> None:
        """Computed from the providers' books: what they moved for us, and what they refused."""
        rows = self.run(self._rows("live"))
        debits = {ref: amount for each in self.providers.values() for ref, amount in each.moved(each.debits).items()}
        refused = set().union(*(each.refusals for each in self.providers.values()))
        unroutable = self._taken_by_no_provider(rows)
        wallets: Counter[str] = Counter()
        for row in rows:
            if row.status in ("succeeded", "refunded"):
                assert debits[row.reference] == round_to_currency(row.total_amount, row.currency)
                wallets[row.currency] += row.amount
            if row.status == "failed":
                assert row.reference in refused or row.reference in unroutable, "no failure without a refusal"
                assert row.reference not in debits, "a debited payment must not fail"
        returned = self.run(
            refunds.page(self.db, self.callers["live"].merchant.id, "live", RefundFilter(), PageBounds(100))
        )[0]
        amounts = {row.id: row.amount for row in rows}
        for refund in returned:
            if refund.held and refund.status != "failed":
                wallets[refund.currency] -= amounts[refund.payment_id]
        currencies: tuple[Currency, ...] = ("XOF", "EUR")
        for currency in currencies:
            assert self._balance(currency) + self.run(self._suspended(currency)) == wallets[currency]

    @invariant()
    def nothing_is_sent_too_often(self) -> None:
        assert max(self.sends.values(), default=0) <= 5
        for provider in self.providers.values():
            for reference, sends in provider.sends.items():
                # A disbursement that was provably not taken may be tried again; a debit never is.
                assert sends == 1 or reference not in provider.debits

    @invariant()
    def a_test_payment_reaches_no_provider(self) -> None:
        sent = {ref for each in self.providers.values() for ref in each.sends}
        assert sent.isdisjoint({row.reference for row in self.run(self._rows("test"))})


def test_money_is_neither_made_nor_lost(base_settings: Settings, sqlite_template: Path, tmp_path: Path) -> None:
    with asyncio.Runner() as runner:
        opening = service(replace(base_settings, home=tmp_path, database_url=f"sqlite:///{tmp_path}/none.db"))
        opened = runner.run(opening.__aenter__())
        try:
            shared = SharedSetup(runner, opened, sqlite_template, tmp_path)
            run_state_machine_as_test(
                partial(MoneyMachine, shared),  # type: ignore[arg-type]
                settings=settings(
                    max_examples=12,
                    stateful_step_count=30,
                    deadline=None,
                    report_multiple_bugs=False,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(opening.__aexit__(None, None, None))
