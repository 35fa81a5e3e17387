"""Exports: files with the payments, the refunds or the movements of a wallet over a period."""

from typing import Final, Literal, get_args

import msgspec

from guichet.clock import DAY, MINUTE, Instant
from guichet.domain.accounts import Language, UserId
from guichet.domain.catalogue import Catalogue
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.money import MAX_AMOUNT, Currency, Hundredths
from guichet.domain.payments import PaymentStatus
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
#: A worker that wrote nothing for so long has died, and another one begins again.
EXPORT_LEASE: Final = 5 * MINUTE
#: An export is given up after so many attempts that an error or the end of their process cut short: restarts that
#: follow one another must not use them up.
MOST_ATTEMPTS: Final = 10


class ListFilter(Record, frozen=True, omit_defaults=True):
    """What a list of payments is narrowed to besides its period; None admits everything. `country`: of the operator, as
    its code. Amounts are the merchant's, in hundredths."""

    status: PaymentStatus | None = None
    operator: str | None = None
    country: str | None = None
    least: Hundredths | None = None
    most: Hundredths | None = None

    def operators(self, modes: Catalogue) -> list[str]:
        """The codes of the operators that it admits. One that is in no catalogue any more is found by its own code."""
        listed = [
            mode.operator
            for mode in modes.modes
            if (self.operator or mode.operator) == mode.operator
            and (self.country or mode.country_code) == mode.country_code
        ]
        return listed or ([self.operator] if self.operator and not self.country else [])

    @property
    def bounds(self) -> tuple[int, int]:
        return self.least or 0, MAX_AMOUNT if self.most is None else self.most

    @property
    def has_no_index(self) -> bool:
        return (self.operator, self.country, self.least, self.most) != (None, None, None, None)


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
    #: A `ListFilter` in JSON; None for all rows of the period.
    filters: str | None = None

    @property
    def list_filter(self) -> ListFilter:
        return ListFilter() if self.filters is None else msgspec.json.decode(self.filters, type=ListFilter)

    @property
    def progress(self) -> int:
        """Percent of the period whose rows are written."""
        if self.reached_at is None or self.until == self.since:
            return 0
        return max(0, min(99, 100 * (self.reached_at - self.since) // (self.until - self.since)))

    def can_be_downloaded(self, now: Instant) -> bool:
        return self.status in ("direct", "ready") and now < self.expires_at
