"""Settlements that arrive together are written together. What writes them is imported with the first one: a server
listens, and takes payments, without."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from guichet.context import HandOver, SettlementBatches
from guichet.db.batching import Batching, Result
from guichet.db.engine import Database
from guichet.domain.payments import Payment, Refund, Settlement
from guichet.settings import Settings

#: On SQLite each holds the event loop for about fifty microseconds.
_SETTLEMENTS_PER_TRANSACTION: Final = 32


def settlement_batches(db: Database, settings: Settings, hand_over: HandOver) -> SettlementBatches:
    pages_url = f"{settings.public_url}/pay"
    return SettlementBatches(
        Batching(partial(_settle_payments, db, pages_url, hand_over), _SETTLEMENTS_PER_TRANSACTION),
        Batching(partial(_settle_refunds, db, hand_over), _SETTLEMENTS_PER_TRANSACTION),
    )


async def _settle_payments(
    db: Database, pages_url: str, hand_over: HandOver, batch: Sequence[Settlement]
) -> Sequence[Result[Payment]]:
    from guichet.refunds.automatic import settle_payments  # noqa: PLC0415 - see above

    return await settle_payments(db, pages_url, hand_over, batch)


async def _settle_refunds(db: Database, hand_over: HandOver, batch: Sequence[Settlement]) -> Sequence[Result[Refund]]:
    from guichet.refunds.settlement import settle_refunds  # noqa: PLC0415 - see above

    return await settle_refunds(db, hand_over, batch)
