"""What all simulated providers share: the store, the clock, the dashboards, decisions, the queue of callbacks."""

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from guichet.clock import NEVER, SECOND, Clock, Instant, later
from guichet_simulator import scenarios
from guichet_simulator.models import EXPIRED, FAILED, PENDING, SUCCEEDED, Claim, FinalState, Transaction
from guichet_simulator.scenarios import CallbackBehaviour
from guichet_simulator.store import Store

if TYPE_CHECKING:
    from guichet_simulator.base import SimulatedProvider

#: Seconds after the first callback until a second one.
_REPEATED_AFTER: Final = 1.0


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

    # Transactions

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
            self.queue_callback(tx, state, after=_REPEATED_AFTER, event_id=event_id)
        if behaviour is CallbackBehaviour.CONTRADICTED:
            self.queue_callback(tx, FAILED if state == SUCCEEDED else SUCCEEDED, after=_REPEATED_AFTER)

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
