"""Exports: files with the payments, the refunds or the movements of a wallet over a period."""

from typing import Final, Literal, get_args

from guichet.clock import DAY, MINUTE, Instant
from guichet.domain.accounts import Language, UserId
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency
from guichet.domain.records import Record

ExportKind = Literal["payments", "refunds", "movements"]
EXPORT_KINDS: Final[tuple[ExportKind, ...]] = get_args(ExportKind)
ExportFormat = Literal["csv", "xlsx"]
EXPORT_FORMATS: Final[tuple[ExportFormat, ...]] = get_args(ExportFormat)
ExportStatus = Literal["direct", "pending", "ready", "failed"]
EXPORT_STATUSES: Final[tuple[ExportStatus, ...]] = get_args(ExportStatus)

#: An export of more rows is prepared by the worker.
MOST_DIRECT_ROWS: Final = 10_000
#: Exports that the worker prepares, or has prepared and keeps, for one merchant.
MOST_PREPARED: Final = 5
#: How long a file can be downloaded.
KEPT: Final = DAY
#: A worker that wrote nothing for so long has died, and another one begins again; so often at most.
EXPORT_LEASE: Final = 5 * MINUTE
MOST_ATTEMPTS: Final = 3


class Export(Record, frozen=True):
    """A row of `exports`, in the order of its columns. `since` and `until` are inclusive."""

    id: int
    merchant_id: MerchantId
    env: Environment
    user_id: UserId
    kind: ExportKind
    format: ExportFormat
    #: Of the wallet whose movements are exported; None for other kinds.
    currency: Currency | None
    language: Language
    time_zone: str
    since: Instant
    until: Instant
    status: ExportStatus
    attempts: int
    due_at: Instant | None
    created_at: Instant
    expires_at: Instant
    reached_at: Instant | None
    row_count: int
    #: Bytes of the file; 0 until it is ready.
    size: int

    @property
    def progress(self) -> int:
        """Percent of the period whose rows are written."""
        if self.reached_at is None or self.until == self.since:
            return 0
        return max(0, min(99, 100 * (self.reached_at - self.since) // (self.until - self.since)))

    def can_be_downloaded(self, now: Instant) -> bool:
        return self.status in ("direct", "ready") and now < self.expires_at
