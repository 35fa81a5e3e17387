"""What the features of the service need, built once by `bootstrap.py`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from redis.asyncio import Redis

from guichet.availability.attempts import AttemptCounts
from guichet.availability.states import AvailabilityReader
from guichet.clock import Clock
from guichet.db.batching import Batching, Result
from guichet.db.engine import Database
from guichet.db.write_probe import WriteProbe
from guichet.domain.accounts import SignInLink, UserId
from guichet.domain.ids import PaymentId
from guichet.domain.payments import Payment, Refund, SubjectType
from guichet.domain.settlement import Settlement
from guichet.domain.token_buckets import TokenBuckets
from guichet.http_client import HttpClient
from guichet.merchants.catalogue import Catalogues
from guichet.merchants.provider_merchants import ProviderMerchants
from guichet.merchants.request_log import RequestLog
from guichet.merchants.vault import Vault
from guichet.providers.providers_file import NO_PROVIDERS, ProvidersConfig
from guichet.providers.registry import Registry
from guichet.settings import Settings

#: Settlements that share one transaction; on SQLite each holds the event loop for about fifty microseconds.
SETTLEMENTS_PER_TRANSACTION: Final = 32


@dataclass(frozen=True, slots=True)
class WakeUps:
    """Events that wake the worker's loops right after a commit that gives them work."""

    polling: asyncio.Event = field(default_factory=asyncio.Event)
    callbacks: asyncio.Event = field(default_factory=asyncio.Event)
    refunds: asyncio.Event = field(default_factory=asyncio.Event)
    late_results: asyncio.Event = field(default_factory=asyncio.Event)
    disputes: asyncio.Event = field(default_factory=asyncio.Event)
    deliveries: asyncio.Event = field(default_factory=asyncio.Event)
    exports: asyncio.Event = field(default_factory=asyncio.Event)
    staff_jobs: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class NotFoundAnswer:
    """`at`: monotonic microseconds. `count` and `duration` are the fields `not_found_…` as this answer left them."""

    at: int
    count: int
    duration: int


@dataclass(frozen=True, slots=True)
class AppContext:
    """One process has one, built by `bootstrap.service`."""

    settings: Settings
    db: Database
    clock: Clock
    vault: Vault
    http_client: HttpClient
    registry: Registry
    catalogues: Catalogues
    provider_merchants: ProviderMerchants
    #: PostgreSQL by a few connections of their own, for what watches the service: they are free when all others wait
    #: for a standby. None for the embedded database.
    monitoring_db: Database | None
    #: Write settlements that arrive together in one transaction (`payments/settlement.py`, `refunds/settlement.py`).
    settle_payments: Callable[[Database, Sequence[Settlement]], Awaitable[Sequence[Result[Payment]]]]
    settle_refunds: Callable[[Database, Sequence[Settlement]], Awaitable[Sequence[Result[Refund]]]]
    #: What the accounts of `registry` were made of.
    providers: ProvidersConfig = NO_PROVIDERS
    #: Rate limits across processes; None when each counts for itself.
    shared_counters: Redis | None = None
    wakeups: WakeUps = field(default_factory=WakeUps)
    #: How often callbacks that name nothing of ours are written and logged, by account: anybody can send them (D101).
    unmatched_callbacks: TokenBuckets = field(default_factory=partial(TokenBuckets, burst=20, per_second=0.5))
    #: How often callbacks about one payment or refund are written. A provider sends a few for each.
    repeated_callbacks: TokenBuckets = field(default_factory=partial(TokenBuckets, burst=60, per_second=1))
    #: Initiations that this process counted and the worker has not written yet.
    attempts: AttemptCounts = field(default_factory=AttemptCounts)
    #: Requests of merchants' keys that this process has not written yet.
    request_log: RequestLog = field(init=False)
    availability: AvailabilityReader = field(init=False)
    settlements: Batching[Settlement, Payment] = field(init=False)
    refund_settlements: Batching[Settlement, Refund] = field(init=False)
    write_probe: WriteProbe = field(init=False)
    #: Polls that are running, which others may join (`payments/polling.py`).
    running_polls: dict[PaymentId, asyncio.Task[Payment | None]] = field(init=False, default_factory=dict)
    #: Polls that a reader waits for, or waited for long enough (`payments/polling.py`).
    awaited_polls: set[asyncio.Task[Any]] = field(init=False, default_factory=set)
    #: Initiations whose request was answered before they ended (`payments/initiation.py`).
    slow_initiations: set[asyncio.Task[Payment]] = field(init=False, default_factory=set)
    #: Audits of the ledger that were started in the back office (`console/admin/operations/ledger_page.py`).
    ledger_audits: set[asyncio.Task[None]] = field(init=False, default_factory=set)
    #: Development only: the links that sign somebody in without a password, by the hash of their secret
    #: (`accounts/sign_in_links.py`).
    sign_in_links: dict[str, SignInLink] = field(init=False, default_factory=dict)
    #: Development only: the demo's people, whose codes pages show (`accounts/demo_telephones.py`).
    demo_people: set[UserId] = field(init=False, default_factory=set)
    #: The last "not found" about payments and refunds that this process got (`payments/outcomes.py`).
    not_found_answers: dict[tuple[SubjectType, int], NotFoundAnswer] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        batching = Batching(partial(self.settle_payments, self.db), SETTLEMENTS_PER_TRANSACTION)
        object.__setattr__(self, "settlements", batching)
        refund_batching = Batching(partial(self.settle_refunds, self.db), SETTLEMENTS_PER_TRANSACTION)
        object.__setattr__(self, "refund_settlements", refund_batching)
        object.__setattr__(self, "request_log", RequestLog(self.clock))
        object.__setattr__(self, "availability", AvailabilityReader(self.db, self.clock))
        disk = self.settings.sqlite_path.parent if self.settings.embedded else None
        object.__setattr__(self, "write_probe", WriteProbe(self.db, self.clock, disk, self.monitoring_db))
