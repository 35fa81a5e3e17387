"""Payment links: types, open window, uses (docs/contract.md, "States"; D18, D19, D30)."""

from typing import Final, Literal, get_args

from guichet.clock import Instant
from guichet.domain.accounts import UserId
from guichet.domain.ids import LinkId, MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency, Hundredths
from guichet.domain.records import Record

#: These exact code points (composed form) are part of the contract (D18).
LinkType = Literal["permanent", "limit\u00e9"]
PERMANENT: Final = "permanent"
LIMITED: Final = "limit\u00e9"
LINK_TYPES: Final[tuple[LinkType, ...]] = get_args(LinkType)

#: What becomes of a checkout session: it is paid, or can no longer be paid.
SessionStatus = Literal["open", "completed", "expired"]
SESSION_STATUSES: Final[tuple[SessionStatus, ...]] = get_args(SessionStatus)

#: Every number with fewer digits is one that the database can hold.
_DIGITS: Final = 19


class PaymentLink(Record, frozen=True):
    """A link. Those of the test environment are made in the console only (D17). One with a `session_reference` is a
    checkout session (`payments/checkout_sessions.py`), which no list of links has.

    `reserved_uses` counts the payments that hold a use: those that succeeded in time, and pending ones until another
    payment takes their place. `completed_uses` counts only the former. `late_uses` counts the payments that succeeded
    after they had lost their place.
    """

    id: LinkId
    merchant_id: MerchantId
    token: str
    type: LinkType
    amount: Hundredths
    currency: Currency
    description: str
    max_uses: int | None
    reserved_uses: int
    completed_uses: int
    starts_at: Instant | None
    expires_at: Instant | None
    created_at: Instant
    late_uses: int = 0
    #: The merchant's own id, unique among its links.
    external_id: str | None = None
    #: JSON text, copied to its payments.
    metadata: str | None = None
    #: The merchant's page to which the pages of its payments lead back.
    return_url: str | None = None
    #: When a person cancelled the sale: what is paid from then on is refunded (`refunds/automatic.py`).
    cancelled_at: Instant | None = None
    #: Whether it is of the test environment.
    test: bool = False
    #: Made at the cash desk, for one sale (`links/links.py`).
    cash_desk: bool = False
    #: Who took the money at the cash desk; None for any other link.
    cashier_id: UserId | None = None
    #: Of a checkout session, the public id; `external_id` is unique among the sessions then.
    session_reference: str | None = None
    session_status: SessionStatus | None = None
    #: The payment that completed the session.
    payment_reference: str | None = None
    #: The merchant's page for a customer who does not want to pay.
    cancel_url: str | None = None
    #: The only operators that can be chosen, separated by commas; None for all.
    operators: str | None = None
    #: JSON: what the merchant knows of its customer. Forgotten when the session ends.
    customer: str | None = None

    @property
    def env(self) -> Environment:
        return "test" if self.test else "live"

    @property
    def uses_count(self) -> int:
        """The payments that succeeded, more than `max_uses` if some were late."""
        return self.completed_uses + self.late_uses

    @property
    def collected(self) -> int:
        """What all payments through the link brought, refunded ones included: each is of the link's amount."""
        return self.amount * self.uses_count

    @property
    def uses_left(self) -> int | None:
        """How many uses are left when only completed ones count, as in the contract; None if there is no limit."""
        return None if self.max_uses is None else max(0, self.max_uses - self.uses_count)

    @property
    def uses_to_free(self) -> int:
        """How many reservations must lapse before a payment can have a use; 0 if it can have one now."""
        return 0 if self.max_uses is None else max(0, self.reserved_uses + self.late_uses + 1 - self.max_uses)

    @property
    def path(self) -> str:
        """The end of the public address: the token in two parts."""
        return f"{self.token[:22]}/{self.token[22:]}"

    def is_open(self, now: Instant) -> bool:
        return (self.starts_at is None or self.starts_at <= now) and (self.expires_at is None or now < self.expires_at)


def link_number(text: str) -> LinkId:
    """The id that a text names; 0, which no link has, if it is none."""
    is_number = text.isascii() and text.isdigit() and len(text) < _DIGITS
    return LinkId(int(text) if is_number else 0)
