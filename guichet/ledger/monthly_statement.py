"""The figures of a wallet over a month: by kind of movement, by operator and by day. They add up to one another."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Final

from sqlalchemy import bindparam, case, func, or_, select

from guichet.clock import Instant
from guichet.db.engine import Database
from guichet.db.tables import payments, postings
from guichet.domain import posting_rules as ledger
from guichet.domain.posting_rules import FEES, WALLET
from guichet.ledger.balance_checkpoints import OF_WALLET, SIGNED, WalletKey, balance_before
from guichet.ledger.wallet_statement import FEE, WITH_SUBJECTS

#: What one period added to the wallet, by cause and operator; and the fees that customers paid, for information.
_FIGURES: Final = (
    select(
        postings.c.cause,
        payments.c.operator,
        func.sum(case((SIGNED != 0, 1), else_=0)),
        func.sum(SIGNED),
        func.sum(FEE),
    )
    .select_from(WITH_SUBJECTS)
    .where(
        *OF_WALLET,
        postings.c.created_at >= bindparam("since"),
        postings.c.created_at < bindparam("before"),
        or_(*(account == own for account in (postings.c.source, postings.c.destination) for own in (WALLET, FEES))),
    )
    .group_by(postings.c.cause, payments.c.operator)
)


@dataclass(slots=True)
class Figures:
    """Hundredths that were added to the wallet (`credits`) and taken from it (`debits`, positive). `fees` are what
    customers paid the service, for information: no part of the wallet."""

    movements: int = 0
    credits: int = 0
    debits: int = 0
    fees: int = 0

    def add(self, movements: int, signed: int, fees: int) -> None:
        self.movements += movements
        self.fees += fees
        if signed > 0:
            self.credits += signed
        else:
            self.debits -= signed


@dataclass(frozen=True, slots=True)
class Day:
    """`start`: midnight in the merchant's time zone. `closing`: what the wallet held at the end of the day."""

    start: Instant
    figures: Figures
    closing: int


@dataclass(slots=True)
class MonthlyStatement:
    """`kinds`: by cause, how many movements and what they added; `operators`: None for movements of no payment."""

    opening: int
    closing: int
    kinds: dict[str, Figures] = field(default_factory=lambda: defaultdict(Figures))
    operators: dict[str | None, Figures] = field(default_factory=lambda: defaultdict(Figures))
    days: list[Day] = field(default_factory=list)
    total: Figures = field(default_factory=Figures)


async def monthly_statement(
    db: Database, wallet: WalletKey, midnights: Sequence[Instant], now: Instant
) -> MonthlyStatement:
    """`midnights`: the beginning of each day, and the end of the last one. Cost: the postings of the month, a day in
    one statement, and `balance_checkpoints.balance_before`."""
    opening = await balance_before(db, wallet, midnights[0], now)
    statement = MonthlyStatement(opening, opening)
    for since, before in pairwise(midnights):
        day = Figures()
        for cause, operator, count, signed, fees in await db.scan(
            _FIGURES, **asdict(wallet), since=since, before=before
        ):
            figures = int(count), int(signed), int(fees)
            for sums in (day, statement.total, statement.kinds[cause], statement.operators[operator]):
                sums.add(*figures)
            statement.closing += int(signed)
        statement.days.append(Day(since, day, statement.closing))
    return statement


MOVEMENT_NAMES: Final = {
    ledger.COLLECTED: ("collection", "Encaissement"),
    ledger.UNSUSPENDED: ("collection, after suspension", "Encaissement (après suspens)"),
    ledger.HELD: ("refund", "Remboursement"),
    ledger.RELEASED: ("refund cancelled", "Remboursement annulé"),
    ledger.LATE_CREDITED: ("collection, paid late", "Encaissement tardif"),
    ledger.LATE_TAKEN_BACK: ("collection, paid late, given back", "Encaissement tardif rendu"),
    ledger.RECEIVABLE_PAID: ("refund, paid late", "Remboursement tardif"),
    ledger.REFUND_LATE_CREDITED: ("refund that came back", "Remboursement revenu"),
    ledger.REFUND_MADE_GOOD: ("refund, after a failure of ours", "Remboursement, après une défaillance de notre part"),
    ledger.DISPUTE_CHARGED: ("disputed payment", "Paiement contesté"),
}


def movement_name(cause: str, language: str) -> str:
    """With a capital letter; an unknown cause is shown as it is stored."""
    english, french = MOVEMENT_NAMES.get(cause, (cause, cause))
    return french if language == "fr" else english[:1].upper() + english[1:]
