"""The catalogue as each merchant sees it: the file's modes under the overrides of `guichet mode`."""

from typing import Final

from msgspec import structs
from sqlalchemy import bindparam, func, or_, select
from sqlalchemy.sql.dml import Insert

from guichet.clock import Clock
from guichet.db.engine import Database, Writer
from guichet.db.read_cache import ReadCache
from guichet.db.sql_functions import upsert
from guichet.db.tables import payment_mode_overrides
from guichet.domain.catalogue import Catalogue, ModeOverride
from guichet.domain.ids import MerchantId

_FIELDS: Final = [
    payment_mode_overrides.c[name] for name in ("merchant_id", "operator", "active", "fee_percent", "fee_fixed")
]
#: Without a merchant, NULL equals nothing: what was changed for everybody is left.
_OVERRIDES: Final = select(*_FIELDS).where(
    or_(
        payment_mode_overrides.c.merchant_id.is_(None), payment_mode_overrides.c.merchant_id == bindparam("merchant_id")
    )
)


def _upsert(*, for_merchant: bool) -> Insert:
    """What is given (not NULL) replaces; what is not given stays."""
    insertion = upsert(payment_mode_overrides).values({column.name: bindparam(column.name) for column in _FIELDS})
    merchant = payment_mode_overrides.c.merchant_id
    return insertion.on_conflict_do_update(
        index_elements=["merchant_id", "operator"] if for_merchant else ["operator"],
        index_where=merchant.is_not(None) if for_merchant else merchant.is_(None),
        set_={
            name: func.coalesce(insertion.excluded[name], payment_mode_overrides.c[name])
            for name in ("active", "fee_percent", "fee_fixed")
        },
    )


_SET_FOR_MERCHANT: Final = _upsert(for_merchant=True)
_SET_FOR_EVERYBODY: Final = _upsert(for_merchant=False)


async def set_override(db: Writer, override: ModeOverride) -> None:
    """Lays `override` over what is already set for the same merchant (or everybody) and operator."""
    statement = _SET_FOR_EVERYBODY if override.merchant_id is None else _SET_FOR_MERCHANT
    await db.write(statement, **structs.asdict(override))


class Catalogues(ReadCache[MerchantId | None, Catalogue]):
    """Each merchant's catalogue, at most one second old. None: as for a merchant without overrides of its own."""

    of = ReadCache.get

    def __init__(self, db: Database, clock: Clock, base: Catalogue) -> None:
        super().__init__(clock, self._read)
        self._db = db
        self.base: Final = base

    async def _read(self, merchant_id: MerchantId | None) -> Catalogue:
        rows = await self._db.all(_OVERRIDES, merchant_id=merchant_id)
        return self.base.with_overrides(ModeOverride(*row) for row in rows)
