"""Our own money at providers and banks: what people record of it, and what a movement posts.

A place is a wallet with a provider (`float:<account>:<wallet>:<currency>`) or an account with a bank
(`bank:<name>:<currency>`). As in every posting of a float, a place is the source when it grows.

    opening      the place held it before Guichet counted
    top_up       money of the company came in from outside
    withdrawal   it went out
    transfer     from one place to another: between wallets, to and from the bank
    fee          what a provider or bank took, on no payment

Nobody records a `conversion`: the provider's list of a day says what it turned into another currency.
"""

import re
from typing import Final, Literal, get_args

from guichet.clock import Instant
from guichet.domain.ids import MerchantId
from guichet.domain.money import Currency, Hundredths
from guichet.domain.posting_rules import BANK, OWN_FUNDS, PROVIDER_FEES, Posting, float_account
from guichet.domain.records import Record

MovementKind = Literal["opening", "top_up", "withdrawal", "transfer", "fee", "conversion"]
MOVEMENT_KINDS: Final[tuple[MovementKind, ...]] = get_args(MovementKind)
#: `announced`: a provider said that it sends the money to the bank, which does not have it yet; nothing is posted.
MovementStatus = Literal["announced", "posted", "cancelled"]
MOVEMENT_STATUSES: Final[tuple[MovementStatus, ...]] = get_args(MovementStatus)
#: What people record besides movements: the balance that a statement shows.
STATEMENT: Final = "statement"
#: Who says what a place holds: the provider itself, or a statement that people typed.
ReadingSource = Literal["provider", "statement"]
READING_SOURCES: Final[tuple[ReadingSource, ...]] = get_args(ReadingSource)
#: Which kinds name a place that shrinks, and one that grows.
FROM_A_PLACE: Final[frozenset[MovementKind]] = frozenset({"withdrawal", "transfer", "fee"})
TO_A_PLACE: Final[frozenset[MovementKind]] = frozenset({"opening", "top_up", "transfer"})
#: The kinds that people record.
RECORDED_KINDS: Final = tuple(kind for kind in MOVEMENT_KINDS if kind in FROM_A_PLACE | TO_A_PLACE)

_BANK: Final = re.compile(r"bank:([a-z0-9_]{1,32})")
_FLOAT: Final = re.compile(r"([a-z0-9_]{1,64})(?::([A-Za-z0-9 _-]{1,40}))?")


class TreasuryMovement(Record, frozen=True):
    """A row of `treasury_movements`, in the order of its columns; of the house merchant. `source` and `destination`:
    the accounts of its posting."""

    id: int
    merchant_id: MerchantId
    reference: str
    kind: MovementKind
    currency: Currency
    amount: Hundredths
    source: str
    destination: str
    status: MovementStatus
    recorded_at: Instant
    #: When it was posted or cancelled; None while it is announced.
    ended_at: Instant | None

    @property
    def entries(self) -> list[Posting]:
        return [Posting("amount", self.source, self.destination, self.amount)]


def place(text: str, currency: Currency) -> str | None:
    """The ledger's account of what a person typed: `bank:NAME`, `ACCOUNT` or `ACCOUNT:WALLET`; None if it is none."""
    if bank := _BANK.fullmatch(text):
        return f"{BANK}{bank[1]}:{currency}"
    if wallet := _FLOAT.fullmatch(text):
        return float_account(wallet[1], wallet[2] or "", currency)
    return None


def accounts_of(kind: MovementKind, shrinks: str | None, grows: str | None) -> tuple[str, str] | None:
    """Source and destination of the posting; None when `kind` does not go from one of these places to the other."""
    if (shrinks is not None, grows is not None) != (kind in FROM_A_PLACE, kind in TO_A_PLACE) or shrinks == grows:
        return None
    return grows or (PROVIDER_FEES if kind == "fee" else OWN_FUNDS), shrinks or OWN_FUNDS
