"""A service with two providers, a merchant and its webhook server, for the random test of its money.

The flows and the worker are the real ones. Every method does one thing that a customer, a merchant or a provider does,
or reads one fact for the invariants.
"""

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from hypothesis.stateful import RuleBasedStateMachine
from msgspec import structs
from sqlalchemy import func, select

from guichet.back_office.merchants import create_merchant
from guichet.bootstrap import Service, database, settlement_batches
from guichet.clock import SECOND, Instant
from guichet.context import WakeUps
from guichet.db.engine import require
from guichet.db.lists.pages import PageBounds
from guichet.db.tables import wallet_entries as entries
from guichet.domain.errors import Conflict, PaymentFailed
from guichet.domain.merchants import ENVS, Caller, Environment
from guichet.domain.money import Currency, Hundredths
from guichet.domain.payments import ApiPayment, Payment
from guichet.domain.posting_rules import WalletStatus
from guichet.ledger import wallets
from guichet.merchants import repository as merchants
from guichet.merchants.catalogue import Catalogues
from guichet.payments import repository as payments
from guichet.payments.create import create_payment
from guichet.payments.lists import PaymentFilter, page
from guichet.payments.polling import poll_payment
from guichet.providers.registry import Registry
from guichet.schemas.payment import PaymentBody
from guichet.worker.worker import Worker
from tests.fakes.clock import ManualClock
from tests.fakes.http_server import ReceivedRequest, ScriptedServer, answers
from tests.fakes.unreliable_provider import UnreliableProvider

T = TypeVar("T")
ROUTES = {"mtn": ["first", "second"], "moov": ["second"]}


@dataclass
class SharedSetup:
    """What all examples share and none changes."""

    runner: asyncio.Runner
    opened: Service
    template: Path
    folder: Path


class MoneyMachineSetup(RuleBasedStateMachine):
    """What one example has of its own, and the steps that its rules are made of."""

    numbers = count()

    def __init__(self, shared: SharedSetup) -> None:
        super().__init__()
        self.shared = shared
        self.run(self._open())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.shared.runner.run(work)

    async def _open(self) -> None:
        path = self.shared.folder / f"{next(self.numbers)}.db"
        shutil.copy(self.shared.template, path)
        ctx = self.shared.opened.ctx
        self.db = database(replace(ctx.settings, database_url=f"sqlite:///{path}"))
        await self.db.open()
        self.clock = ManualClock(Instant(1_800_000_000 * SECOND))
        #: The customers' answers, by our reference; and how the providers answer now, by method.
        self.decisions: dict[str, bool] = {}
        self.answer_modes = dict.fromkeys(("initiate", "status", "refund", "refund_status"), "")
        self.providers = {
            name: UnreliableProvider(self.decisions.get, lambda verb, _: self.answer_modes[verb])
            for name in ("first", "second")
        }
        self.ctx = structs.replace(
            ctx,
            db=self.db,
            settlements=settlement_batches(self.db, ctx.settings, ctx.hand_over),
            clock=self.clock,
            registry=Registry(self.clock, self.providers, ROUTES),
            catalogues=Catalogues(self.db, self.clock, ctx.catalogues.base),
            wakeups=WakeUps(),
        )
        self.worker = Worker(self.ctx, self.shared.opened.http_client)
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

    def _pay(
        self,
        env: Environment,
        amount: int,
        currency: Currency = "XOF",
        operator: str = "mtn",
        ending: str = "1234",
        mood: str = "",
    ) -> str:
        self.answer_modes["initiate"] = mood
        name = f"e{next(self.numbers)}"
        phone = f"2299700{ending}"
        order = PaymentBody.model_construct(
            amount=Hundredths(amount * 100), currency=currency, operator=operator, phone_number=phone, external_id=name
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

    def _paid(self, amount: int, currency: Currency, *, stated: str = "") -> str:
        """A live payment that its customer validated, polled once; `stated` is what the provider then answers."""
        reference = self._pay("live", amount, currency)
        self.decisions.setdefault(reference, True)
        self.answer_modes["status"] = stated
        self._read(reference)
        return reference

    def _read(self, reference: str) -> None:
        row = self._payment(reference)
        if row is not None:
            self.run(poll_payment(self.ctx, row))

    def _set_wallet(self, status: WalletStatus) -> None:
        async def change() -> None:
            async with self.db.transaction() as tx:
                mine = self.callers["live"].merchant.id
                await wallets.set_wallet_status(tx, mine, "live", "XOF", status, self.clock.now())

        self.run(change())
        self.wallet_status = status

    def _pass(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self.run(self.worker.run_until_idle())

    def _payment(self, reference: str) -> Payment | None:
        async def look() -> Payment | None:
            for caller in self.callers.values():
                found = reference and await payments.by_reference(self.db, caller.merchant.id, caller.env, reference)
                if found:
                    return found
            return None

        return self.run(look())

    def _balance(self, currency: Currency) -> int:
        wallet = self.run(wallets.wallet(self.db, self.callers["live"].merchant.id, "live", currency))
        return wallet.balance if wallet else 0

    def _taken_by_no_provider(self, rows: list[ApiPayment]) -> set[str]:
        """No provider took it, and each answered so at once: that is explicit too."""
        taken = {ref for each in self.providers.values() for ref in each.debits}
        return {row.reference for row in rows if row.failure_reason == "operator_unavailable"} - taken

    async def _rows(self, env: Environment) -> list[ApiPayment]:
        caller = self.callers[env]
        return (await page(self.db, caller.merchant.id, env, ApiPayment, PaymentFilter(), PageBounds(100)))[0]

    async def _suspended(self, currency: Currency) -> int:
        waiting = select(func.coalesce(func.sum(entries.c.amount), 0)).where(
            entries.c.suspended, entries.c.currency == currency
        )
        return int((await self.db.scan(waiting))[0][0])
