"""What the features of the service need, built once by `bootstrap.py`."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import field

from guichet.availability import AttemptCounts, AvailabilityReader
from guichet.clock import Clock, Instant
from guichet.db.batching import Batching
from guichet.db.engine import Database
from guichet.db.write_probe import WriteProbe
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


class NotFoundAnswer(Record, frozen=True):
    """`at`: monotonic microseconds. `count` and `duration` are the fields `not_found_…` as this answer left them."""

    at: int
    count: int
    duration: int


class SettlementBatches(Record, frozen=True):
    """Write settlements that arrive together in one transaction (`payments/settlement.py`, `refunds/settlement.py`), in
    the database that they were made for (`refunds/settlement_batches.py`)."""

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
    wakeups: WakeUps = field(default_factory=WakeUps)
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
