"""Incidents, which a person must look at."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from sqlalchemy import bindparam, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from guichet.clock import Instant
from guichet.db.engine import Database, Writer
from guichet.db.tables import incidents
from guichet.domain.ids import IncidentId, MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.payments import Payment, Refund, SubjectType

IncidentKind = Literal["mismatch", "stuck", "float_empty", "already_refunded"]
#: A provider reported another amount or currency than ours; nothing was credited.
MISMATCH: Final = "mismatch"
#: Still pending after 72 hours.
STUCK: Final = "stuck"
#: Our balance with the provider does not cover a refund, which waits.
FLOAT_EMPTY: Final = "float_empty"
#: The provider says that the customer has the money back already; the hold stays until a person looked.
ALREADY_REFUNDED: Final = "already_refunded"
KINDS: Final[tuple[IncidentKind, ...]] = get_args(IncidentKind)

_MOST: Final = 500


@dataclass(frozen=True, slots=True)
class Incident:
    """`reference` is that of a payment or of a refund, as `subject_type` says. `occurrences`: how often it was
    reported."""

    id: IncidentId
    merchant_id: MerchantId
    env: Environment
    kind: IncidentKind
    subject_type: SubjectType
    reference: str
    provider_account: str | None
    detail: str
    occurrences: int
    opened_at: Instant
    last_seen_at: Instant
    closed_at: Instant | None


_INSERT: Final = upsert(incidents).values(
    merchant_id=bindparam("merchant_id"),
    env=bindparam("env"),
    kind=bindparam("kind"),
    subject_type=bindparam("subject_type"),
    reference=bindparam("reference"),
    provider_account=bindparam("provider_account"),
    detail=bindparam("detail"),
    occurrences=1,
    opened_at=bindparam("now"),
    last_seen_at=bindparam("now"),
)
_OPEN: Final = _INSERT.on_conflict_do_update(
    index_elements=["merchant_id", "kind", "reference"],
    set_={
        "occurrences": incidents.c.occurrences + 1,
        "last_seen_at": _INSERT.excluded.last_seen_at,
        "detail": _INSERT.excluded.detail,
        "closed_at": None,
    },
)
_LIST: Final = select(incidents).where(incidents.c.closed_at.is_(None)).order_by(incidents.c.id).limit(_MOST)
_CLOSE: Final = (
    update(incidents)
    .where(incidents.c.id == bindparam("incident_id"), incidents.c.closed_at.is_(None))
    .values(closed_at=bindparam("now"))
    .returning(incidents.c.id)
)
_SETTLED: Final = (
    update(incidents)
    .where(
        incidents.c.merchant_id == bindparam("merchant"),
        incidents.c.reference == bindparam("settled_reference"),
        or_(incidents.c.kind == STUCK, incidents.c.kind == FLOAT_EMPTY),
        incidents.c.closed_at.is_(None),
    )
    .values(closed_at=bindparam("now"))
)


async def report_about(
    writer: Writer, subject: Payment | Refund, kind: IncidentKind, detail: str, now: Instant
) -> None:
    """Opens an incident about a payment or a refund, or increases the count of the existing one."""
    await report(
        writer,
        merchant_id=subject.merchant_id,
        env=subject.env,
        kind=kind,
        subject_type="payment" if isinstance(subject, Payment) else "refund",
        reference=subject.reference,
        provider_account=subject.provider_account,
        detail=detail,
        now=now,
    )


async def report(
    writer: Writer,
    *,
    merchant_id: MerchantId,
    env: Environment,
    kind: IncidentKind,
    subject_type: SubjectType,
    reference: str,
    provider_account: str | None,
    detail: str,
    now: Instant,
) -> None:
    """Opens an incident, or increases the count of the existing one and opens it again."""
    await writer.write(
        _OPEN,
        merchant_id=merchant_id,
        env=env,
        kind=kind,
        subject_type=subject_type,
        reference=reference,
        provider_account=provider_account,
        detail=detail,
        now=now,
    )


async def still_open(db: Database) -> list[Incident]:
    """The open incidents, oldest first, at most 500."""
    return [Incident(*row) for row in await db.scan(_LIST)]


async def close(db: Database, incident_id: IncidentId, now: Instant) -> bool:
    """Closes an incident; False when there is no open one with this id."""
    return await db.write(_CLOSE, incident_id=incident_id, now=now) is not None


async def close_settled(writer: Writer, merchant_id: MerchantId, reference: str, now: Instant) -> None:
    """Closes the incidents `stuck` and `float_empty` of a payment or refund that became final."""
    await writer.write(_SETTLED, merchant=merchant_id, settled_reference=reference, now=now)
