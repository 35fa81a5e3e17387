"""Follow-up: the rows by which a provider is asked again about payments and refunds that ended, since it may still move
their money. `late_money/` works on them."""

from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import bindparam

from guichet.clock import Instant, later
from guichet.db.engine import Transaction, Writer
from guichet.db.sql_functions import new_columns, params, upsert
from guichet.db.tables import late_results
from guichet.domain.late_results import POLL_DELAYS
from guichet.domain.payments import Payment, Refund

_NEW_COLUMNS: Final = new_columns(late_results)
_values: Final[dict[str, Any]] = params(*_NEW_COLUMNS)
_INSERT: Final = upsert(late_results).values(_values).on_conflict_do_nothing()
#: A callback about a subject that is being followed up already only brings the next poll forward.
_POLL_NOW: Final = (
    upsert(late_results)
    .values(_values)
    .on_conflict_do_update(
        index_elements=["merchant_id", "subject_type", "subject_id"],
        set_={"next_poll_at": bindparam("next_poll_at")},
        where=late_results.c.stage == "asking",
    )
)


async def schedule(tx: Transaction, ended: Iterable[tuple[Payment | Refund, Instant, bool]]) -> None:
    """Follows up payments and refunds in the transaction that ends them at these instants: first an hour later. Each
    with whether the provider itself states that it failed."""
    await tx.write_many(_INSERT, [row(subject, at, refused=refused) for subject, at, refused in ended])


async def poll_now(db: Writer, subject: Payment | Refund, now: Instant) -> None:
    """The worker polls a payment or refund that ended, unless something was found already. What is no longer followed
    up is asked about once, and the provider's answer says whether it goes on."""
    ended_at = subject.updated_at if isinstance(subject, Payment) else (subject.processed_at or now)
    await db.write(_POLL_NOW, **row(subject, ended_at, refused=True) | {"next_poll_at": now})


def row(subject: Payment | Refund, ended_at: Instant, *, refused: bool) -> dict[str, Any]:
    """The columns of a new row, without its id."""
    empty: dict[str, Any] = dict.fromkeys(_NEW_COLUMNS)
    return empty | {
        "merchant_id": subject.merchant_id,
        "env": subject.env,
        "currency": subject.currency,
        "subject_type": subject.subject_type,
        "subject_id": subject.id,
        "reference": subject.reference,
        "provider_account": subject.provider_account,
        "status": "pending",
        "stage": "asking",
        "told_at": ended_at,
        "refused_by_provider": refused,
        "asked_count": 0,
        "next_poll_at": later(ended_at, POLL_DELAYS[0]),
    }
