"""What providers charged us, posted from the lines of their statements.

Each payment and each refund is charged once: the first statement that names its fee counts.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import structs

from guichet.clock import Instant
from guichet.db.engine import Database
from guichet.db.sql_functions import new_row, upsert
from guichet.db.tables import postings
from guichet.domain.posting_rules import PAYMENT_CHARGED, REFUND_CHARGED, provider_fee
from guichet.domain.reconciliation import MATCHED, PAYMENT, REFUND, ComparedSubject, Finding

_CAUSES: Final = {PAYMENT: PAYMENT_CHARGED, REFUND: REFUND_CHARGED}
#: The constraint that admits each cause of a subject once makes a repetition change nothing.
_INSERT: Final = (
    upsert(postings)
    .values(new_row(postings))
    .on_conflict_do_nothing(index_elements=["merchant_id", "cause", "subject_id", "leg"])
)


def has_fee(finding: Finding) -> bool:
    """Whether a fee can be posted: the statement names one, for a payment or refund that moved the same amount here."""
    return finding.outcome == MATCHED and bool(finding.line and finding.ours and finding.line.fee)


async def post_fees(
    db: Database, findings: Sequence[Finding], float_account: Callable[[ComparedSubject], str], now: Instant
) -> None:
    """Posts the fees of these findings, those for which `has_fee`, from our wallet with the provider; no merchant's
    moves. Provider accounts are live only."""
    rows = []
    for finding in findings:
        line, subject = finding.line, finding.ours
        assert line is not None
        assert subject is not None
        assert line.fee
        posting = provider_fee(float_account(subject), line.fee)
        rows.append(
            {
                "merchant_id": subject.merchant_id,
                "env": "live",
                "currency": subject.currency,
                "cause": _CAUSES[subject.kind],
                "subject_id": subject.id,
                "created_at": now,
                **structs.asdict(posting),
            }
        )
    if rows:
        await db.write_many(_INSERT, rows)
