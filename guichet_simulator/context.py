"""What all simulated providers share: choosing a scenario, storing a transaction, deciding it, queueing callbacks."""

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from guichet.clock import NEVER, SECOND, Clock, Instant, later
from guichet_simulator import scenarios
from guichet_simulator.models import (
    EXPIRED,
    FAILED,
    PENDING,
    SUCCEEDED,
    Call,
    Claim,
    FinalState,
    Kind,
    Transaction,
)
from guichet_simulator.scenarios import CallbackBehaviour, ResponseKind, Scenario
from guichet_simulator.store import Store

if TYPE_CHECKING:
    from guichet_simulator.base import SimulatedProvider

#: Seconds after the request until a forged callback, and after the first callback until a second one.
FORGED_AFTER: Final = 0.5
REPEATED_AFTER: Final = 1.0


@dataclass(frozen=True, slots=True)
class Dashboard:
    """What a client configures on a provider's web site, and what it has there."""

    #: Where callbacks go, and the secret that signs them.
    callback_url: str | None = None
    secret: str | None = None
    #: Wave: the secret with which the client must sign every request; None: unsigned ones are accepted.
    signing_secret: str | None = None
    #: pawaPay: the public keys (PEM, by key id) with which the client must sign every request that moves money; None:
    #: unsigned ones are accepted.
    request_keys: Mapping[str, str] | None = None
    #: MTN: the products ("collection", "disbursement") that each API user and each subscription key opens; None: every
    #: acceptable credential opens every product.
    credentials: Mapping[str, Sequence[str]] | None = None
    #: The account that the client's key leads to: what was made through another one is unknown to it. Empty: the first.
    company: str = ""
    #: Whether the client's balance is empty: nothing can be paid out of it.
    float_empty: bool = False
    #: Whether that is then said, where the provider can, by a code that may mean the payee too.
    float_ambiguous: bool = False
    #: Stripe: the currency (EUR) of the client's balance, into which francs are converted; empty: what is paid is held.
    held_in: str = ""
    #: pawaPay: the operators (by its words) that do not work as usual: DELAYED, or CLOSED to every new deposit.
    availability: Mapping[str, str] = field(default_factory=dict)


class SimulatorContext:
    """The store, the clock and the providers of one simulator."""

    def __init__(self, store: Store, clock: Clock, public_url: str, dashboards: Mapping[str, Dashboard]) -> None:
        """`dashboards` by provider."""
        self.store = store
        self.clock = clock
        self.public_url = public_url.rstrip("/")
        self.providers: dict[str, SimulatedProvider] = {}
        #: When the background task looks at what is due: then, or once `look` is set.
        self.next_look = NEVER
        self.look = asyncio.Event()
        self._dashboards = dict(dashboards)

    def dashboard(self, provider: str) -> Dashboard:
        """What `POST /simulator/control/dashboard` set last, else what the simulator was started with."""
        saved: dict[str, Any] | None = self.store.setting(f"dashboard:{provider}")
        return replace(self._dashboards[provider], **saved) if saved else self._dashboards[provider]

    # Scenarios

    def choose_scenario(self, provider: str, call: Kind, digits: str, *, preauthorised: bool = False) -> Scenario:
        """The scenario of a debit or a credit. `preauthorised`: the customer gave a code and need not confirm."""
        if forced := self.forced_scenario(provider, call):
            return forced
        if call == "credit":
            return scenarios.for_credit(digits) or scenarios.PROMPT
        return scenarios.for_debit(digits) or (scenarios.BY_NAME["succeeds"] if preauthorised else scenarios.WAITS)

    def choose_status_scenario(self, tx: Transaction) -> Scenario | None:
        """The scenario of a status call. The digits of a number concern only the first status call."""
        if forced := self.forced_scenario(tx.provider, "status"):
            return forced
        digits = tx.detail.get("digits") or tx.phone or str(tx.amount // 100)
        scenario = scenarios.for_status(digits) if tx.kind == "debit" else None
        if scenario is None or tx.detail.get("status_asked"):
            return None
        self.store.patch_detail(tx, status_asked=True)
        return scenario

    def forced_scenario(self, provider: str, call: Call) -> Scenario | None:
        """The scenario that `POST /simulator/control/next` forces on this call, used up once."""
        rows = self.store.rows(
            "SELECT * FROM forced WHERE provider = ? AND call = ? ORDER BY id LIMIT 1", provider, call
        )
        if not rows:
            return None
        row = rows[0]
        if row["times"] is not None:
            self.store.run("UPDATE forced SET times = times - 1 WHERE id = ?", row["id"])
            self.store.run("DELETE FROM forced WHERE times <= 0")
        return scenarios.with_timing(scenarios.BY_NAME[row["scenario"]], row["after"], row["delay"])

    # Transactions

    def create_transaction(
        self,
        provider: str,
        kind: Kind,
        scenario: Scenario,
        *,
        operator: str,
        ref: str,
        amount: int,
        currency: str,
        lifetime: float | None = None,
        client_ref: str | None = None,
        phone: str | None = None,
        parent: str | None = None,
        resource: str = "",
        callback_url: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> Transaction:
        """Store a request. It expires after `lifetime` seconds (None: the provider's) when it waits for a customer.
        Raises DuplicateRef."""
        now = self.clock.now()
        wait = (lifetime or self.providers[provider].lifetime) if scenario.waits_for_customer else scenario.after
        due_at = None if scenario.final_state is None else later(now, int(wait * SECOND))
        other_currency = "XAF" if currency == "XOF" else "XOF"
        tx = self.store.add(
            {
                "provider": provider,
                "kind": kind,
                "resource": resource,
                "operator": operator,
                "ref": ref,
                "client_ref": client_ref,
                "phone": phone,
                "amount": amount,
                "currency": currency,
                "stated_amount": None if scenario.hides_amount else amount + scenario.amount_error,
                "stated_currency": other_currency if scenario.wrong_currency else currency,
                "state": PENDING,
                "parent": parent,
                "scenario": scenario.name,
                "planned_state": scenario.final_state,
                "planned_reason": scenario.reason,
                "due_at": due_at,
                "created_at": now,
                "callback_url": callback_url,
                "company": self.dashboard(provider).company,
                "detail": dict(detail or {}),
            }
        )
        if scenario.callbacks is CallbackBehaviour.FORGED:
            self.queue_callback(tx, SUCCEEDED, after=FORGED_AFTER, forged=True)
        if scenario.response is ResponseKind.FINAL and scenario.final_state is not None:
            self.decide(tx, scenario.final_state, scenario.reason)
            return self.store.get(tx.id)
        if due_at is not None:
            self.falls_due(due_at)
        return tx

    def find(self, provider: str, kind: Kind, ref: str, resource: str = "") -> Transaction | None:
        self.apply_due_decisions()
        return self.store.find(provider, kind, ref, resource, self.dashboard(provider).company)

    def own(self, transactions: Sequence[Transaction]) -> list[Transaction]:
        """Those that the account of the client's present key made."""
        return [tx for tx in transactions if tx.company == self.dashboard(tx.provider).company]

    def own_key(self, provider: str, key: str) -> str:
        """An Idempotency-Key, which another account may use for itself."""
        company = self.dashboard(provider).company
        return f"{company}/{key}" if company else key

    def decide(self, tx: Transaction, state: FinalState, reason: str | None = None, *, final: bool = False) -> bool:
        """Make a transaction final and queue its callbacks; False if it was final already.

        Where the provider lets a refused customer try again, a failed debit stays pending, unless `final`.
        """
        provider = self.providers[tx.provider]
        if tx.state != PENDING:
            return False
        if state == FAILED and tx.kind == "debit" and provider.second_chance is not None and not final:
            due_at = later(self.clock.now(), int(provider.second_chance * SECOND))
            self.store.patch_detail(tx, last_error=reason)
            self.store.plan_decision(tx, provider.ends_as, reason, due_at)
            self.queue_callback(tx, "attempt_failed")
            return True
        if not self.store.settle(tx, state, reason, self.clock.now()):
            return False
        self._queue_result_callbacks(tx, state)
        return True

    def apply_due_decisions(self) -> None:
        """Decide every transaction that is due. Called before anything is read, so that responses match the clock."""
        for tx in self.store.select("state = 'pending' AND due_at <= ?", self.clock.now()):
            if tx.planned_state is not None:
                no_more_attempts = "last_error" in tx.detail or tx.planned_state == EXPIRED
                self.decide(tx, tx.planned_state, tx.planned_reason, final=no_more_attempts)

    # Callbacks

    def _queue_result_callbacks(self, tx: Transaction, state: FinalState) -> None:
        behaviour = scenarios.BY_NAME[tx.scenario].callbacks
        if behaviour is CallbackBehaviour.NONE:
            return
        event_id = self.queue_callback(tx, state)
        if behaviour is CallbackBehaviour.TWICE:
            self.queue_callback(tx, state, after=REPEATED_AFTER, event_id=event_id)
        if behaviour is CallbackBehaviour.CONTRADICTED:
            self.queue_callback(tx, FAILED if state == SUCCEEDED else SUCCEEDED, after=REPEATED_AFTER)

    def queue_callback(
        self, tx: Transaction, claim: Claim, *, after: float = 0.0, forged: bool = False, event_id: str | None = None
    ) -> str:
        """Queue a callback for `after` seconds from now; returns its event id."""
        event_id = event_id or uuid.uuid4().hex
        due_at = later(self.clock.now(), int(after * SECOND))
        values = {"transaction_id": tx.id, "event_id": event_id, "claim": claim, "forged": forged, "due_at": due_at}
        self.store.insert("callbacks", values)
        self.falls_due(due_at)
        return event_id

    def falls_due(self, at: Instant) -> None:
        """Wakes the background task if it would look later."""
        if at < self.next_look:
            self.look.set()
