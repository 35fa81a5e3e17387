"""What all families share: choosing a scenario, taking a request, deciding it, telling the client about it."""

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import aiohttp

from guichet.clock import SECOND, Clock
from guichet_simulator import scenarios
from guichet_simulator.scenarios import Answer, Notice, Scenario
from guichet_simulator.store import EXPIRED, FAILED, PENDING, SUCCEEDED, Kind, QueuedCallback, State, Store, Transaction

#: A forged notification and the second of two arrive this long after their occasion, in seconds.
FORGED_AFTER: Final = 0.5
REPEATED_AFTER: Final = 1.0
_ANSWER_WITHIN: Final = 10
#: A notification being sent is not picked up again before this, in seconds.
_LEASE: Final = 30


@dataclass(frozen=True, slots=True)
class Dashboard:
    """What a client sets once on an operator's web site: where notifications go, and the secret that signs them."""

    callback_url: str | None = None
    secret: str | None = None


@dataclass(frozen=True, slots=True)
class Notification:
    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "POST"


class Voice(Protocol):
    """What the desk asks of a family."""

    name: str
    #: Seconds before each repeat of a notification that was not answered 2xx.
    retries: tuple[float, ...]
    #: A refused customer may try again for this many seconds before the request ends; None: a refusal is final.
    second_chance: float | None
    #: What a request ends as once the second chance has passed.
    ends_as: State

    def notification(self, tx: Transaction, queued: QueuedCallback) -> Notification | None:
        """None when the family says nothing on this occasion."""


class Desk:
    """One simulator: its store, its clock, its families, and the loop that lets time pass."""

    def __init__(self, store: Store, clock: Clock, public_url: str, dashboards: Mapping[str, Dashboard]) -> None:
        self.store = store
        self.clock = clock
        self.public_url = public_url.rstrip("/")
        self.families: dict[str, Voice] = {}
        self._dashboards = dict(dashboards)
        self._news = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()

    def dashboard(self, family: str) -> Dashboard:
        """What was set last: by `POST /simulator/control/dashboard`, which is remembered, or at the start."""
        start = self._dashboards.get(family, Dashboard())
        saved: dict[str, str] = self.store.setting(f"dashboard:{family}") or {}
        return Dashboard(saved.get("callback_url", start.callback_url), saved.get("secret", start.secret))

    # Scenarios

    def choose(self, family: str, call: str, digits: str, *, agreed: bool = False) -> Scenario:
        """The scenario of one call ("debit" or "credit"). `agreed`: the customer gave a code, nobody waits for them."""
        if forced := self._forced(family, call):
            return forced
        if call == "credit":
            return scenarios.for_credit(digits) or scenarios.PROMPT
        return scenarios.for_debit(digits) or (scenarios.BY_NAME["succeeds"] if agreed else scenarios.WAITS)

    def choose_status(self, tx: Transaction) -> Scenario | None:
        """Digits spoil the first question only; what is forced lasts as long as it was asked for."""
        if forced := self._forced(tx.family, "status"):
            return forced
        digits = tx.detail.get("digits") or tx.phone or str(tx.amount // 100)
        wanted = scenarios.for_status(digits) if tx.kind == "debit" else None
        if wanted is None or tx.detail.get("asked"):
            return None
        self.store.patch_detail(tx, asked=True)
        return wanted

    def _forced(self, family: str, call: str) -> Scenario | None:
        found = self.store.rows("SELECT * FROM forced WHERE family = ? AND call = ? ORDER BY id LIMIT 1", family, call)
        if not found:
            return None
        row = found[0]
        if row["times"] is not None:
            self.store.run("UPDATE forced SET times = times - 1 WHERE id = ?", row["id"])
            self.store.run("DELETE FROM forced WHERE times <= 0")
        return scenarios.timed(scenarios.BY_NAME[row["scenario"]], row["after"], row["delay"])

    def forced_for(self, family: str, call: str) -> Scenario | None:
        """For calls that only ever meet forced scenarios (tokens)."""
        return self._forced(family, call)

    # Transactions

    def take(
        self,
        family: str,
        kind: Kind,
        scenario: Scenario,
        *,
        operator: str,
        ref: str,
        amount: int,
        currency: str,
        lifetime: float,
        client_ref: str | None = None,
        phone: str | None = None,
        parent: str | None = None,
        callback_url: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> Transaction:
        """Store a request. `lifetime`: seconds until it expires when it waits for a customer. Raises DuplicateRef."""
        now = self.clock.now()
        wait = lifetime if scenario.by_hand else scenario.after
        other = "XAF" if currency == "XOF" else "XOF"
        tx = self.store.add(
            {
                "family": family,
                "kind": kind,
                "operator": operator,
                "ref": ref,
                "client_ref": client_ref,
                "phone": phone,
                "amount": amount,
                "currency": currency,
                "shown_amount": None if scenario.hides_amount else amount + scenario.amount_error,
                "shown_currency": other if scenario.wrong_currency else currency,
                "state": PENDING,
                "parent": parent,
                "scenario": scenario.name,
                "plan": scenario.plan,
                "plan_reason": scenario.reason,
                "due_at": None if scenario.plan is None else now + int(wait * SECOND),
                "created_at": now,
                "callback_url": callback_url,
                "detail": dict(detail or {}),
            }
        )
        if scenario.notice is Notice.FORGED:
            self.queue(tx, SUCCEEDED, after=FORGED_AFTER, forged=True)
        if scenario.answer is Answer.FINAL and scenario.plan is not None:
            self.decide(tx, scenario.plan, scenario.reason)
        self._news.set()
        return self.store.get(tx.id)

    def find(self, family: str, kind: Kind, ref: str) -> Transaction | None:
        self.let_time_pass()
        return self.store.find(family, kind, ref)

    def decide(self, tx: Transaction, state: State, reason: str | None = None, *, last_word: bool = False) -> bool:
        """Apply an outcome; False if the request was decided already. `last_word` leaves no second chance."""
        family = self.families[tx.family]
        if tx.state != PENDING:
            return False
        if state == FAILED and tx.kind == "debit" and family.second_chance is not None and not last_word:
            self.store.patch_detail(tx, last_error=reason)
            self.store.replan(tx, family.ends_as, reason, self.clock.now() + int(family.second_chance * SECOND))
            self.queue(tx, "attempt_failed")
            return True
        if not self.store.settle(tx, state, reason, self.clock.now()):
            return False
        self._announce(tx, state)
        return True

    def _announce(self, tx: Transaction, state: State) -> None:
        notice = scenarios.BY_NAME[tx.scenario].notice
        if notice is Notice.NONE:
            return
        first = self.queue(tx, state)
        if notice is Notice.TWICE:
            self.queue(tx, state, after=REPEATED_AFTER, event_id=first)
        if notice is Notice.CONTRADICTED:
            self.queue(tx, FAILED if state == SUCCEEDED else SUCCEEDED, after=REPEATED_AFTER)

    def queue(
        self, tx: Transaction, claim: str, *, after: float = 0.0, forged: bool = False, event_id: str | None = None
    ) -> str:
        """Plan a notification that claims `claim`; returns its event id."""
        event = event_id or uuid.uuid4().hex
        due_at = self.clock.now() + int(after * SECOND)
        values = {"transaction_id": tx.id, "event_id": event, "claim": claim, "forged": forged, "due_at": due_at}
        self.store.insert("callbacks", values)
        self._news.set()
        return event

    def let_time_pass(self) -> None:
        """Decide whatever fell due. Called before anything is read, so that answers never lag behind the clock."""
        for tx in self.store.select("state = 'pending' AND due_at <= ?", self.clock.now()):
            if tx.plan is not None:
                exhausted = "last_error" in tx.detail or tx.plan == EXPIRED
                self.decide(tx, tx.plan, tx.plan_reason, last_word=exhausted)

    # The loop

    def wake(self) -> None:
        """Start the loop if it is not running: a mounted application gets no lifespan of its own."""
        if self._loop is None or self._loop.done():
            self._loop = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        for task in (self._loop, *self._sending):
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in (self._loop, *self._sending) if task), return_exceptions=True)
        self.store.close()

    async def _run(self) -> None:
        while True:
            self._news.clear()
            self.let_time_pass()
            for queued in self.store.callbacks("due_at <= ?", self.clock.now()):
                lease = self.clock.now() + _LEASE * SECOND
                self.store.run(
                    "UPDATE callbacks SET due_at = ?, attempts = attempts + 1 WHERE id = ?", lease, queued.id
                )
                task = asyncio.create_task(self._send(replace(queued, attempts=queued.attempts + 1)))
                self._sending.add(task)
                task.add_done_callback(self._sending.discard)
            await self._rest(self.store.next_due())

    async def _rest(self, until: int | None) -> None:
        """Until something falls due, or something new came in."""
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._news.wait())]
        if until is not None:
            waits.append(asyncio.ensure_future(self.clock.sleep(max(0.0, (until - self.clock.now()) / SECOND))))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _send(self, queued: QueuedCallback) -> None:
        tx = self.store.get(queued.transaction_id)
        family = self.families[tx.family]
        notification = family.notification(tx, queued)
        if notification is None:
            self.store.run("UPDATE callbacks SET due_at = NULL WHERE id = ?", queued.id)
            return
        answered, error = await _deliver(notification)
        again = None
        if not (answered and 200 <= answered < 300) and queued.attempts <= len(family.retries):
            again = self.clock.now() + int(family.retries[queued.attempts - 1] * SECOND)
        self.store.run(
            "UPDATE callbacks SET due_at = ?, url = ?, answered = ?, error = ? WHERE id = ?",
            again, notification.url, answered, error, queued.id,
        )  # fmt: skip
        self._news.set()


async def _deliver(notification: Notification) -> tuple[int | None, str | None]:
    """The status answered, or why there was none. Certificates are not checked: a developer's server signs its own."""
    timeout = aiohttp.ClientTimeout(total=_ANSWER_WITHIN)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.request(
                notification.method,
                notification.url,
                data=notification.body,
                headers={"Content-Type": "application/json", **notification.headers},
                ssl=False,
            ) as answer,
        ):
            return answer.status, None
    except (aiohttp.ClientError, TimeoutError, OSError) as fault:
        return None, f"{type(fault).__name__}: {fault}"
