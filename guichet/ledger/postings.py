"""Postings: the append-only double entry, and its effect on the wallets."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import bindparam, insert, or_

from guichet.db.engine import Transaction
from guichet.db.tables import postings, wallet_entries
from guichet.domain import posting_rules
from guichet.domain.posting_rules import Movement, Posting

_INSERT_POSTING: Final = insert(postings).values(
    {column.name: bindparam(column.name) for column in postings.c if column.name != "id"}
)
#: Postings that payments make, those that refunds make, and those that disputes make.
OF_PAYMENTS: Final = or_(*(postings.c.cause == cause for cause in posting_rules.PAYMENT_CAUSES))
OF_REFUNDS: Final = or_(*(postings.c.cause == cause for cause in posting_rules.REFUND_CAUSES))
OF_DISPUTES: Final = or_(*(postings.c.cause == cause for cause in posting_rules.DISPUTE_CAUSES))

_INSERT_ENTRY: Final = insert(wallet_entries).values(
    {column.name: bindparam(column.name) for column in wallet_entries.c if column.name != "id"}
)


async def post(tx: Transaction, movements: Sequence[Movement]) -> None:
    """Writes postings and their effect on the wallets. Posting a cause twice violates `uq_postings_cause`."""
    rows: list[dict[str, object]] = []
    effects: list[dict[str, object]] = []
    for movement in movements:
        subject: dict[str, object] = {
            "merchant_id": movement.merchant_id,
            "env": movement.env,
            "currency": movement.currency,
            "created_at": movement.created_at,
            "subject_id": movement.subject_id,
        }
        rows += [_posting(subject, movement.cause, entry) for entry in movement.entries]
        waiting = sum(entry.amount for entry in movement.entries if entry.destination == posting_rules.SUSPENSE)
        effect = posting_rules.wallet_movement(movement.entries)
        effects += [{**subject, "amount": waiting, "suspended": True}] if waiting else []
        effects += [{**subject, "amount": effect, "suspended": False}] if effect else []
    await tx.execute_many(_INSERT_POSTING, rows)
    await tx.execute_many(_INSERT_ENTRY, effects)


def _posting(subject: dict[str, object], cause: str, entry: Posting) -> dict[str, object]:
    return {
        **subject,
        "cause": cause,
        "leg": entry.leg,
        "source": entry.source,
        "destination": entry.destination,
        "amount": entry.amount,
    }
