"""The real flows and the real worker against a shadow ledger, driven at random (docs/architecture.md, "Invariants").

Whatever happens, in whatever order: an operator's books, the merchant's wallet and the webhooks say the same.
"""

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import func, select

from guichet.bootstrap import Service, create_merchant, database, service
from guichet.clock import SECOND
from guichet.context import WakeUps
from guichet.db.engine import require
from guichet.db.tables import wallet_entries as entries
from guichet.domain.errors import Conflict, PaymentFailed
from guichet.domain.merchants import ENVS, Caller, Environment
from guichet.domain.money import Currency, Hundredths, round_to_currency
from guichet.domain.payments import Payment
from guichet.domain.posting_rules import WALLET_STATUSES, WalletStatus
from guichet.ledger import wallets
from guichet.merchants import repository as merchants
from guichet.merchants.catalogue import Catalogues
from guichet.payments import refund_repository as refunds
from guichet.payments import repository as payments
from guichet.payments.create import PaymentRequest, create_payment
from guichet.payments.disbursement import poll_refund
from guichet.payments.polling import poll_payment
from guichet.payments.refund import request_refund
from guichet.payments.settlement import settle_payment
from guichet.providers.base import Refused, Succeeded
from guichet.providers.registry import Registry
from guichet.settings import Settings
from guichet.webhooks import deliveries
from guichet.worker.worker import Worker
from tests.fakes.clock import ManualClock
from tests.fakes.http_server import ReceivedRequest, ScriptedServer, answers
from tests.fakes.unreliable_provider import UnreliableProvider
from tests.invariants import check_books

T = TypeVar("T")
ROUTES = {"mtn": ["first", "second"], "moov": ["second"]}
TAKING = ("", "lost before", "lost after", "refuse", "not taken")
TELLING = ("", "silent", "wrong")


@dataclass
class SharedSetup:
    """What every example shares: nothing that it changes."""

    runner: asyncio.Runner
    opened: Service
    template: Path
    folder: Path


class MoneyMachine(RuleBasedStateMachine):
    made = Bundle("made")
    numbers = count()

    def __init__(self, ground: SharedSetup) -> None:
        super().__init__()
        self.ground = ground
        self.run(self._open())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.ground.runner.run(work)

    async def _open(self) -> None:
        path = self.ground.folder / f"{next(self.numbers)}.db"
        shutil.copy(self.ground.template, path)
        ctx = self.ground.opened.ctx
        self.db = database(replace(ctx.settings, database_url=f"sqlite:///{path}"))
        await self.db.open()
        self.clock = ManualClock(1_800_000_000 * SECOND)
        #: The customers' answers, by our reference; and how the operators behave now, by verb.
        self.fates: dict[str, bool] = {}
        self.moods = dict.fromkeys(("initiate", "status", "refund", "refund_status"), "")
        self.operators = {
            name: UnreliableProvider(self.fates.get, lambda verb, _: self.moods[verb]) for name in ("first", "second")
        }
        self.ctx = replace(
            ctx,
            db=self.db,
            clock=self.clock,
            registry=Registry(self.clock, self.operators, ROUTES),
            catalogues=Catalogues(self.db, self.clock, ctx.catalogues.base),
            wakeups=WakeUps(),
        )
        self.worker = Worker(self.ctx, self.ground.opened.http_client)
        self.receiver_is_well = True
        self.server = ScriptedServer(self._receive)
        await self.server.__aenter__()
        self.sends: Counter[str] = Counter()
        merchant, _ = await create_merchant(self.ctx, "M")
        self.callers = {env: Caller(merchant, env) for env in ENVS}
        self.wallet_status = "Actif"
        async with self.db.transaction() as tx:
            for env in ENVS:
                url = self.server.url()
                await merchants.configure_endpoint(tx, merchant.id, env, url, None, self.clock.now())

    async def _receive(self, writer: asyncio.StreamWriter, request: ReceivedRequest) -> None:
        self.sends[json.loads(request.body)["id"]] += 1
        status = b"204 No Content" if self.receiver_is_well else b"503 Sorry"
        await answers(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n", hang_up=True)(writer, request)

    def teardown(self) -> None:
        self.run(self._close())

    async def _close(self) -> None:
        await self.server.__aexit__()
        await self.db.close()

    # --- what people and operators do ---------------------------------------------------------------------------------

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
        mood=st.sampled_from(TAKING),
    )
    def a_customer_starts_to_pay(
        self, env: Environment, amount: int, currency: Currency, operator: str, ending: str, mood: str
    ) -> str:
        return self._pay(env, amount, currency, operator, ending, mood)

    def _pay(
        self,
        env: Environment,
        amount: int,
        currency: Currency = "XOF",
        operator: str = "mtn",
        ending: str = "1234",
        mood: str = "",
    ) -> str:
        self.moods["initiate"] = mood
        name = f"e{next(self.numbers)}"
        phone = f"2299700{ending}"
        order = PaymentRequest(
            Hundredths(amount * 100), currency, operator=operator, phone_number=phone, external_id=name
        )
        try:
            collected = self.run(create_payment(self.ctx, self.callers[env], order))
        except Conflict:
            assert env == "live"
            assert currency == "XOF"
            assert self.wallet_status != "Actif"
            return ""
        except PaymentFailed:
            row = require(self.run(payments.by_external_id(self.db, self.callers[env].merchant.id, env, name)))
            assert row.status == "failed"
            return row.reference
        assert collected.created
        return collected.payment.reference

    @rule(reference=made, validates=st.booleans())
    def the_customer_answers(self, reference: str, validates: bool) -> None:
        """Once: an operator does not change its mind."""
        self.fates.setdefault(reference, validates)

    @rule(verb=st.sampled_from(["status", "refund_status"]), mood=st.sampled_from(TELLING))
    def an_operator_changes_its_manners(self, verb: str, mood: str) -> None:
        self.moods[verb] = mood

    @rule(target=made, amount=st.integers(10, 900_000), currency=st.sampled_from(["XOF", "EUR"]))
    def a_customer_pays_without_trouble(self, amount: int, currency: Currency) -> str:
        return self._paid(amount, currency)

    def _paid(self, amount: int, currency: Currency, *, stated: str = "") -> str:
        """A live payment that its customer validated, asked about once; `stated` is what the operator then says."""
        reference = self._pay("live", amount, currency)
        self.fates.setdefault(reference, True)
        self.moods["status"] = stated
        self._read(reference)
        return reference

    @rule(target=made, amount=st.integers(10, 900_000))
    def an_operator_states_another_amount(self, amount: int) -> str:
        reference = self._paid(amount, "XOF", stated="wrong")
        stored = self._payment(reference)
        assert stored is None or stored.status == "pending"
        return reference

    @rule(target=made, amount=st.integers(10, 900_000), status=st.sampled_from(["Gelé", "Fermé"]))
    def a_wallet_is_frozen_while_a_customer_pays(self, amount: int, status: WalletStatus) -> str:
        reference = self._pay("live", amount)
        self._set_wallet(status)
        before = self._balance("XOF")
        self.fates.setdefault(reference, True)
        self.moods["status"] = ""
        self._read(reference)
        assert self._balance("XOF") == before, "a frozen wallet takes nothing"
        return reference

    @rule(reference=made)
    def the_merchant_reads(self, reference: str) -> None:
        self._read(reference)

    def _read(self, reference: str) -> None:
        row = self._payment(reference)
        if row is not None:
            self.run(poll_payment(self.ctx, row))

    @rule(reference=made, goes=st.sampled_from(["", *TAKING]), arrives=st.booleans(), at_once=st.booleans())
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
        self.fates.setdefault(requested.reference, arrives)
        self.moods["refund"] = goes
        if at_once:
            self.moods["refund_status"] = ""
            for seconds in (0, 6):
                self._pass(seconds)

    @rule(reference=made)
    def the_merchant_reads_a_refund(self, reference: str) -> None:
        row = self._payment(reference)
        mine = self.run(refunds.page(self.db, self.callers["live"].merchant.id, "live", 100, 0))[0]
        for refund in mine:
            if row is not None and refund.payment_id == row.id:
                self.run(poll_refund(self.ctx, refund))

    @rule(reference=made, success=st.booleans())
    def a_late_word_about_what_is_final(self, reference: str, success: bool) -> None:
        row = self._payment(reference)
        if row is None or row.status == "pending":
            return
        word = Succeeded(Hundredths(row.total_amount), row.currency) if success else Refused("expired")
        assert self.run(settle_payment(self.ctx, row, word)) == row

    @rule(status=st.sampled_from(WALLET_STATUSES))
    def the_wallet_becomes(self, status: WalletStatus) -> None:
        self._set_wallet(status)

    def _set_wallet(self, status: WalletStatus) -> None:
        async def change() -> None:
            async with self.db.transaction() as tx:
                mine = self.callers["live"].merchant.id
                await wallets.set_wallet_status(tx, mine, "live", "XOF", status, self.clock.now())

        self.run(change())
        self.wallet_status = status

    @rule(well=st.booleans())
    def the_receiver_is(self, well: bool) -> None:
        self.receiver_is_well = well

    @rule(seconds=st.sampled_from([0, 1, 5, 10, 31, 60, 300, 1800, 3600, 90_000]))
    def time_passes(self, seconds: int) -> None:
        self._pass(seconds)

    def _pass(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self.run(self.worker.run_until_idle())

    @rule()
    def a_worker_dies_with_its_claims(self) -> None:
        async def claim() -> None:
            now = self.clock.now()
            await deliveries.claim_due(self.db, now, now + 30 * SECOND, 3)
            await payments.claim_due(self.db, now, now + 30 * SECOND, 3)
            await refunds.claim_due(self.db, now, now + 30 * SECOND, 3)

        self.run(claim())

    def _payment(self, reference: str) -> Payment | None:
        async def look() -> Payment | None:
            for caller in self.callers.values():
                found = reference and await payments.by_reference(self.db, caller.merchant.id, caller.env, reference)
                if found:
                    return found
            return None

        return self.run(look())

    # --- what must be true, always ------------------------------------------------------------------------------------

    @invariant()
    def the_books_are_clean(self) -> None:
        self.run(check_books(self.db, events_queued=True))

    @invariant()
    def the_shadow_ledger_agrees(self) -> None:
        """Written from the operators' side: what they moved for us, and what they said no to."""
        rows = self.run(self._rows("live"))
        debits = {ref: amount for each in self.operators.values() for ref, amount in each.moved(each.debits).items()}
        refused = set().union(*(each.refusals for each in self.operators.values()))
        unroutable = self._refused_by_everybody(rows)
        wallets: Counter[str] = Counter()
        for row in rows:
            if row.status in ("succeeded", "refunded"):
                assert debits[row.reference] == round_to_currency(row.total_amount, row.currency)
                wallets[row.currency] += row.amount
            if row.status == "failed":
                assert row.reference in refused or row.reference in unroutable, "no failure without a refusal"
                assert row.reference not in debits, "who was debited is not told that it failed"
        returned = self.run(refunds.page(self.db, self.callers["live"].merchant.id, "live", 100, 0))[0]
        amounts = {row.id: row.amount for row in rows}
        for refund in returned:
            if refund.held and refund.status != "failed":
                wallets[refund.currency] -= amounts[refund.payment_id]
        currencies: tuple[Currency, ...] = ("XOF", "EUR")
        for currency in currencies:
            assert self._balance(currency) + self.run(self._suspended(currency)) == wallets[currency]

    def _balance(self, currency: Currency) -> int:
        wallet = self.run(wallets.wallet(self.db, self.callers["live"].merchant.id, "live", currency))
        return wallet.balance if wallet else 0

    def _refused_by_everybody(self, rows: list[Payment]) -> set[str]:
        """No operator took it, and each said so at once: that is explicit too."""
        taken = {ref for each in self.operators.values() for ref in each.debits}
        return {row.reference for row in rows if row.failure_reason == "operator_unavailable"} - taken

    @invariant()
    def nothing_is_sent_too_often(self) -> None:
        assert max(self.sends.values(), default=0) <= 5
        for operator in self.operators.values():
            for reference, sends in operator.sends.items():
                # A disbursement that was provably not taken may be tried again; a debit never is.
                assert sends == 1 or reference not in operator.debits

    @invariant()
    def a_test_payment_asks_nobody(self) -> None:
        asked = {ref for each in self.operators.values() for ref in each.sends}
        assert asked.isdisjoint({row.reference for row in self.run(self._rows("test"))})

    async def _rows(self, env: Environment) -> list[Payment]:
        caller = self.callers[env]
        return (await payments.page(self.db, caller.merchant.id, env, payments.PaymentFilter(), 100, 0))[0]

    async def _suspended(self, currency: Currency) -> int:
        waiting = select(func.coalesce(func.sum(entries.c.amount), 0)).where(
            entries.c.suspended, entries.c.currency == currency
        )
        return int((await self.db.scan(waiting))[0][0])


def test_money_is_neither_made_nor_lost(base_settings: Settings, sqlite_template: Path, tmp_path: Path) -> None:
    with asyncio.Runner() as runner:
        opening = service(replace(base_settings, home=tmp_path, database_url=f"sqlite:///{tmp_path}/none.db"))
        opened = runner.run(opening.__aenter__())
        try:
            ground = SharedSetup(runner, opened, sqlite_template, tmp_path)
            run_state_machine_as_test(
                partial(MoneyMachine, ground),  # type: ignore[arg-type]
                settings=settings(
                    max_examples=25,
                    stateful_step_count=30,
                    deadline=None,
                    report_multiple_bugs=False,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(opening.__aexit__(None, None, None))
