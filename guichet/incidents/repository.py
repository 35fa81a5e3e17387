"""Incidents, which a person must look at."""

from operator import attrgetter
from typing import Final, Literal, get_args

from sqlalchemy import bindparam, literal_column, or_, select, update

from guichet.clock import Instant
from guichet.db.engine import Database, Reader, Row, Writer, require
from guichet.db.sql_functions import equal, lock_until_commit, params, upsert
from guichet.db.tables import incidents
from guichet.domain.ids import IncidentId, MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.messages import Code, Message, decode, encode
from guichet.domain.payments import IncidentSubject, Payment, Refund
from guichet.domain.records import Record

IncidentKind = Literal[
    "mismatch",
    "stuck",
    "float_empty",
    "already_refunded",
    "payee_unconfirmed",
    "paid_after_failure",
    "failed_after_success",
    "returned_twice",
    "disputed",
    "refunded_elsewhere",
    "statement_differs",
    "missing_aggregated_merchant",
    "misconfigured_route",
    "account_changed",
    "float_differs",
    "automatic_refund",
]
#: A provider reported another amount or currency than ours; nothing was credited.
MISMATCH: Final = "mismatch"
#: Still pending after 72 hours.
STUCK: Final = "stuck"
#: Our balance with the provider does not cover a refund, which waits.
FLOAT_EMPTY: Final = "float_empty"
#: The provider says that the customer has the money back already; the hold stays until a person looked.
ALREADY_REFUNDED: Final = "already_refunded"
#: A provider moved the money of a payment or refund after its failure had been told; a person decides.
PAID_AFTER_FAILURE: Final = "paid_after_failure"
#: A refund whose success had been told came back to us; a person decides.
FAILED_AFTER_SUCCESS: Final = "failed_after_success"
#: Late money went back to the payer twice, or after the merchant had been credited.
RETURNED_TWICE: Final = "returned_twice"
#: A customer contests a card payment with the bank.
DISPUTED: Final = "disputed"
#: A provider lists a refund of a payment that Guichet did not make.
REFUNDED_ELSEWHERE: Final = "refunded_elsewhere"
#: What a provider account lists of a day differs from our ledger; closed when a comparison finds them equal.
STATEMENT_DIFFERS: Final = "statement_differs"
#: A refund waits until a person confirms the number that paid.
PAYEE_UNCONFIRMED: Final = "payee_unconfirmed"
#: The provider has no id of this merchant yet, and the account must name it: `guichet providers setup wave-merchants`.
MISSING_AGGREGATED_MERCHANT: Final = "missing_aggregated_merchant"
#: Payments fail because no account serves their operator, or the provider does not let ours in.
MISCONFIGURED_ROUTE: Final = "misconfigured_route"
#: A key may belong to another account than the one that payments were sent to: two people confirm that it does not.
ACCOUNT_CHANGED: Final = "account_changed"
#: What a provider or a statement says that we have in a wallet or bank differs from the ledger, a day long already;
#: closed by a reading that agrees.
FLOAT_DIFFERS: Final = "float_differs"
#: A payment succeeded though its link had no use for it, and is refunded; a person looks at it, the more so while the
#: refund waits.
AUTOMATIC_REFUND: Final = "automatic_refund"
KINDS: Final[tuple[IncidentKind, ...]] = get_args(IncidentKind)

_MOST: Final = 500


class Incident(Record, frozen=True):
    """`reference` is that of a payment, refund or dispute, as `subject_type` says; about an account one that is made
    up. `occurrences`: how often it was reported."""

    id: IncidentId
    merchant_id: MerchantId
    env: Environment
    kind: IncidentKind
    subject_type: IncidentSubject
    reference: str
    provider_account: str | None
    detail: Message
    occurrences: int
    opened_at: Instant
    last_seen_at: Instant
    closed_at: Instant | None


_INSERT: Final = upsert(incidents).values(
    **params("merchant_id", "env", "kind", "subject_type", "reference", "provider_account", "detail"),
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
#: Those of the test environment come last ("live" < "test"): any number of them hides no live one.
_LIST: Final = (
    select(incidents).where(incidents.c.closed_at.is_(None)).order_by(incidents.c.env, incidents.c.id).limit(_MOST)
)
_OF_MERCHANT: Final = (
    *equal(incidents, merchant_id="merchant", kind="wanted_kind", provider_account="account"),
    incidents.c.closed_at.is_(None),
)
_OF_ACCOUNT: Final = (
    *equal(incidents, provider_account="account", kind="wanted_kind"),
    incidents.c.closed_at.is_(None),
)
_OF_SUBJECT: Final = (
    *equal(incidents, merchant_id="merchant", reference="settled_reference"),
    incidents.c.closed_at.is_(None),
)
_END: Final = update(incidents).values(closed_at=bindparam("now"))
_OPEN_OF_MERCHANT: Final = select(incidents.c.id).where(*_OF_MERCHANT).limit(1)
_CLOSE_OF_MERCHANT: Final = _END.where(*_OF_MERCHANT)
_OPEN_OF_ACCOUNT: Final = select(incidents.c.id).where(*_OF_ACCOUNT).limit(1)
_CLOSE_OF_ACCOUNT: Final = _END.where(*_OF_ACCOUNT)
_LOCK_ACCOUNT: Final = select(lock_until_commit(bindparam("locked_account")))
_THIS: Final = (incidents.c.id == bindparam("incident_id"), incidents.c.closed_at.is_(None))
_CLOSE: Final = _END.where(*_THIS).returning(incidents.c.id)
_CLOSE_ALL: Final = _END.where(*_OF_SUBJECT)
_SETTLED: Final = _CLOSE_ALL.where(or_(*(incidents.c.kind == kind for kind in (STUCK, FLOAT_EMPTY, PAYEE_UNCONFIRMED))))
_ABOUT: Final = select(incidents).where(
    incidents.c.merchant_id == bindparam("merchant"),
    incidents.c.kind.in_([literal_column(f"'{kind}'") for kind in KINDS]),
    incidents.c.reference == bindparam("about"),
)


def _incident(row: Row) -> Incident:
    values = dict(zip(incidents.c.keys(), row, strict=True))
    return Incident(**{**values, "detail": require(decode(values["detail"]))})


async def report_about(
    writer: Writer, subject: Payment | Refund, kind: IncidentKind, detail: Message, now: Instant
) -> None:
    """Opens an incident about a payment or a refund, or increases the count of the existing one."""
    await report(
        writer,
        merchant_id=subject.merchant_id,
        env=subject.env,
        kind=kind,
        subject_type=subject.subject_type,
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
    subject_type: IncidentSubject,
    reference: str,
    provider_account: str | None,
    detail: Message,
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
        detail=encode(detail),
        now=now,
    )


async def report_once_for_merchant(
    db: Database, subject: Payment | Refund, kind: IncidentKind, detail: Message, now: Instant
) -> None:
    """Opens an incident about the merchant's first payment or refund that meets it through this account, unless one is
    open already. Reads the merchant's incidents of this kind, by the unique index."""
    params = {"merchant": subject.merchant_id, "wanted_kind": kind, "account": subject.provider_account}
    if await db.one(_OPEN_OF_MERCHANT, **params) is None:
        await report_about(db, subject, kind, detail, now)


async def report_once_for_account(
    db: Database, subject: Payment | Refund, kind: IncidentKind, detail: Message, now: Instant
) -> None:
    """Opens an incident about the first payment or refund that meets it through this account, whichever merchant's it
    is, unless one is open already. While one is open this is one read of an index."""
    params = {"account": subject.provider_account, "wanted_kind": kind}
    if await db.one(_OPEN_OF_ACCOUNT, **params) is not None:
        return
    async with db.transaction() as tx:
        # Against other requests that found none either.
        await tx.one(_LOCK_ACCOUNT, locked_account=f"{kind} {subject.provider_account}")
        if await tx.one(_OPEN_OF_ACCOUNT, **params) is None:
            await report_about(tx, subject, kind, detail, now)


async def close_of_merchant(
    writer: Writer, merchant_id: MerchantId, kind: IncidentKind, account: str, now: Instant
) -> None:
    await writer.write(_CLOSE_OF_MERCHANT, merchant=merchant_id, wanted_kind=kind, account=account, now=now)


async def close_of_account(writer: Writer, kind: IncidentKind, account: str, now: Instant) -> None:
    await writer.write(_CLOSE_OF_ACCOUNT, wanted_kind=kind, account=account, now=now)


async def still_open(db: Database) -> list[Incident]:
    """The open incidents, live before test, oldest first, at most 500."""
    return [_incident(row) for row in await db.scan(_LIST)]


async def about(db: Reader, merchant_id: MerchantId, reference: str) -> list[Incident]:
    """The incidents of one payment or refund, open and closed, oldest first: at most one of each kind."""
    incidents = [_incident(row) for row in await db.all(_ABOUT, merchant=merchant_id, about=reference)]
    return sorted(incidents, key=attrgetter("id"))


async def close(db: Writer, incident_id: IncidentId, now: Instant) -> bool:
    """Closes an incident; False when there is no open one with this id."""
    return await db.write(_CLOSE, incident_id=incident_id, now=now) is not None


async def close_settled(writer: Writer, merchant_id: MerchantId, reference: str, now: Instant) -> None:
    """Closes the incidents `stuck`, `float_empty` and `payee_unconfirmed` of a payment or refund that became final."""
    await writer.write(_SETTLED, merchant=merchant_id, settled_reference=reference, now=now)


async def close_all(writer: Writer, merchant_id: MerchantId, reference: str, now: Instant) -> None:
    """Closes every incident of a payment or refund about which a person decided."""
    await writer.write(_CLOSE_ALL, merchant=merchant_id, settled_reference=reference, now=now)


class IncidentDetail(Code):
    STUCK = "incident_detail.stuck"
    NO_AMOUNT = "incident_detail.no_amount", "asked"
    OTHER_AMOUNT = "incident_detail.other_amount", "asked", "stated"
    OTHER_CURRENCY = "incident_detail.other_currency", "asked", "stated"
    CONTRADICTED = "incident_detail.contradicted", "total"
    RETURN_STUCK = "incident_detail.return_stuck"
    RETURNED_TWICE = "incident_detail.returned_twice", "total", "request"
    RETURNED_ALL_THE_SAME = "incident_detail.returned_all_the_same"
    RETURN_FLOAT_EMPTY = "incident_detail.return_float_empty"
    RETURN_REFUSED = "incident_detail.return_refused"
    RETURN_FAILED = "incident_detail.return_failed", "answer"
    PAYEE_UNCONFIRMED = "incident_detail.payee_unconfirmed", "total"
    FLOAT_EMPTY = "incident_detail.float_empty", "account", "total"
    FLOAT_UNREADABLE = "incident_detail.float_unreadable", "account", "total"
    BANK_ASKS = "incident_detail.bank_asks", "bank_reason"
    BANK_TOOK = "incident_detail.bank_took", "total", "bank_reason"
    BANK_TOOK_UNMATCHED = "incident_detail.bank_took_unmatched", "total", "account", "dispute", "bank_reason"
    BANK_PREVENTED = "incident_detail.bank_prevented", "total", "bank_reason"
    DISPUTE_LOST = "incident_detail.dispute_lost", "total"
    REFUNDED_ELSEWHERE = "incident_detail.refunded_elsewhere", "total"
    STATEMENT_DIFFERS = "incident_detail.statement_differs", "account", "day", "differences"
    MERCHANT_UNKNOWN = "incident_detail.merchant_unknown", "account", "name"
    NOT_SERVED = "incident_detail.not_served", "operator"
    MISCONFIGURED = "incident_detail.misconfigured", "operator", "answer"
    ACCOUNT_CHANGED = "incident_detail.account_changed", "account"
    FLOAT_DIFFERS = "incident_detail.float_differs", "place", "total", "since"
    PAID_LINK_PAID_AGAIN = "incident_detail.paid_link_paid_again", "total"
    CANCELLED_SALE_PAID = "incident_detail.cancelled_sale_paid", "total"
    SECOND_ATTEMPT_PAID = "incident_detail.second_attempt_paid", "total"
    REFUND_AWAITS_WALLET = "incident_detail.refund_awaits_wallet", "total"
    REFUND_AWAITS_BALANCE = "incident_detail.refund_awaits_balance", "total"
    REFUND_AWAITS_DISPUTE = "incident_detail.refund_awaits_dispute", "total"
    REFUND_AWAITS_ROUTE = "incident_detail.refund_awaits_route", "total"
    AUTOMATIC_REFUND_FAILED = "incident_detail.automatic_refund_failed", "total"
