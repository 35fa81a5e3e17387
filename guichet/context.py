"""What the features of the service need, built once by `bootstrap.py`."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import field, structs

from guichet.availability import AttemptCounts, AvailabilityReader
from guichet.clock import Clock, Instant
from guichet.db.batching import Batching
from guichet.db.engine import Database
from guichet.db.write_probe import WriteProbe
from guichet.domain.events import Delivery
from guichet.domain.ids import PaymentId
from guichet.domain.payments import Payment, Refund, Settlement, SubjectType
from guichet.domain.records import Record
from guichet.domain.token_buckets import TokenBuckets
from guichet.http_client import HttpClient
from guichet.merchants.catalogue import Catalogues
from guichet.merchants.provider_merchants import ProviderMerchants
from guichet.merchants.request_log import RequestLog
from guichet.merchants.vault import Vault
from guichet.providers.providers_file import ProvidersConfig
from guichet.providers.registry import Registry
from guichet.settings import Settings

if TYPE_CHECKING:
    from redis.asyncio import Redis


class WakeUps(Record, frozen=True):
    """Events that wake the worker's loops right after a commit that gives them work."""

    polling: asyncio.Event = field(default_factory=asyncio.Event)
    callbacks: asyncio.Event = field(default_factory=asyncio.Event)
    refunds: asyncio.Event = field(default_factory=asyncio.Event)
    late_results: asyncio.Event = field(default_factory=asyncio.Event)
    disputes: asyncio.Event = field(default_factory=asyncio.Event)
    deliveries: asyncio.Event = field(default_factory=asyncio.Event)
    exports: asyncio.Event = field(default_factory=asyncio.Event)
    staff_jobs: asyncio.Event = field(default_factory=asyncio.Event)


class LocalWorker(Protocol):
    """The worker of this process."""

    def reserve(self, delivery: Delivery) -> Instant | None:
        """Keeps a place for the first attempt; until when it belongs to this process. None: it waits its turn."""

    def release(self, reserved: Sequence[Delivery]) -> None: ...

    def begin(self, reserved: Sequence[Delivery]) -> None:
        """Makes these attempts."""


class HandOver:
    """Lets a worker of this process make first attempts right after the transaction that queues them, without a claim.
    Their rows are inserted as a claim leaves them (counted, due again when the lease ends), so that a process that dies
    loses nothing. No other delivery waits longer because of them: see `FairShare.reserve`."""

    def __init__(self, wake: asyncio.Event) -> None:
        """`wake`: of the loop that claims all others."""
        self._wake = wake
        #: None while no worker runs here.
        self.worker: LocalWorker | None = None

    @contextmanager
    def after_commit(self) -> Iterator["DeliveryBatch"]:
        """Around a transaction whose deliveries are begun when it is committed."""
        deliveries = DeliveryBatch(self.worker)
        try:
            yield deliveries
        except BaseException:
            deliveries.release()
            self._wake.set()  # Only the answer may be lost: what needs a claim is there then.
            raise
        deliveries.begin()
        if deliveries.needs_claim:  # A claim that finds nothing costs as much as the settlement of a payment.
            self._wake.set()


class DeliveryBatch:
    """The deliveries that one transaction queues. `needs_claim`: some of them are left to the queue."""

    def __init__(self, worker: LocalWorker | None) -> None:
        self._worker = worker
        self._reserved: list[Delivery] = []
        self.needs_claim = False

    def reserve(self, delivery: Delivery) -> Delivery:
        """The delivery as it is to be inserted: claimed already if the worker has a place for it."""
        until = None if self._worker is None else self._worker.reserve(delivery)
        if until is None:
            self.needs_claim = True
            return delivery
        claimed = structs.replace(delivery, attempts=1, next_attempt_at=until)
        self._reserved.append(claimed)
        return claimed

    def release(self) -> None:
        if self._worker is not None:
            self._worker.release(self._reserved)

    def begin(self) -> None:
        if self._worker is not None and self._reserved:
            self._worker.begin(self._reserved)


class NotFoundAnswer(Record, frozen=True):
    """`at`: monotonic microseconds. `count` and `duration` are the fields `not_found_…` as this answer left them."""

    at: int
    count: int
    duration: int


class SettlementBatches(Record, frozen=True):
    """Write settlements that arrive together in one transaction (`payments/settlement.py`, `refunds/settlement.py`), in
    the database that they were made for (`bootstrap.py`)."""

    payments: Batching[Settlement, Payment]
    refunds: Batching[Settlement, Refund]


class AppContext(Record, frozen=True):
    """What one process has once; `bootstrap.service` builds it. What needs one or two of these takes them, and not
    this."""

    settings: Settings
    db: Database
    clock: Clock
    vault: Vault
    http_client: HttpClient
    registry: Registry
    #: What the accounts of `registry` were made of.
    providers: ProvidersConfig
    catalogues: Catalogues
    provider_merchants: ProviderMerchants
    availability: AvailabilityReader
    settlements: SettlementBatches
    #: Requests of merchants' keys that this process has not written yet.
    request_log: RequestLog
    #: PostgreSQL by a few connections of their own, for what watches the service: they are free when all others wait
    #: for a standby. None for the embedded database.
    monitoring_db: Database | None
    write_probe: WriteProbe
    #: Rate limits across processes; None when each counts for itself.
    shared_counters: "Redis | None"
    wakeups: WakeUps
    #: Webhooks that a worker of this process sends without a claim.
    hand_over: HandOver
    #: How often callbacks that name nothing of ours are written and logged, by account: anybody can send them.
    unmatched_callbacks: TokenBuckets = field(default_factory=partial(TokenBuckets, burst=20, per_second=0.5))
    #: How often callbacks about one payment or refund are written. A provider sends a few for each.
    repeated_callbacks: TokenBuckets = field(default_factory=partial(TokenBuckets, burst=60, per_second=1))
    #: Initiations that this process counted and the worker has not written yet.
    attempts: AttemptCounts = field(default_factory=AttemptCounts)
    #: When the provider of an account is asked next whose account it is (`payments/account_identity.py`).
    identity_due: dict[str, Instant] = field(default_factory=dict)
    #: Polls that are running, which others may join (`payments/polling.py`).
    running_polls: dict[PaymentId, asyncio.Task[Payment | None]] = field(default_factory=dict)
    #: Polls that a reader waits for, or waited for long enough (`payments/polling.py`), and readings of identities.
    awaited_polls: set[asyncio.Task[Any]] = field(default_factory=set)
    #: Initiations whose request was answered before they ended (`payments/initiation.py`).
    slow_initiations: set[asyncio.Task[Payment]] = field(default_factory=set)
    #: Audits of the ledger that were started in the back office.
    ledger_audits: set[asyncio.Task[None]] = field(default_factory=set)
    #: The last "not found" about payments and refunds that this process got (`payments/outcomes.py`).
    not_found_answers: dict[tuple[SubjectType, int], NotFoundAnswer] = field(default_factory=dict)
