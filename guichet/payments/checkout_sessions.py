"""Checkout sessions: a hosted page for one order, on which the customer chooses the operator (docs/decisions.md,
"Checkout sessions").

A session is a link of one use, in either environment. It is `completed` in the transaction that settles its payment,
and `expired` only while no payment of it is pending, under the lock of its link: then none will succeed any more,
because a payment looks at the session under the same lock (`check_open`).
"""

from contextlib import suppress
from typing import Any, Final

from msgspec import json

from guichet.clock import DAY, HOUR, Instant, later
from guichet.context import AppContext
from guichet.db.engine import Transaction, require
from guichet.db.references import new_reference
from guichet.domain.catalogue import Catalogue
from guichet.domain.errors import Conflict
from guichet.domain.events import SESSION_COMPLETED, SESSION_EXPIRED, EventName
from guichet.domain.ids import LinkId, PaymentId
from guichet.domain.merchants import Caller, random_text
from guichet.domain.payment_links import LIMITED, PaymentLink
from guichet.domain.payments import Payment
from guichet.links import repository as link_repository
from guichet.links import session_repository
from guichet.links.links import TOKEN_LENGTH
from guichet.links.session_repository import DueSession
from guichet.payments import attempts, repository
from guichet.schemas.checkout_session import (
    LASTS_AT_MOST_DAYS,
    LASTS_HOURS,
    CheckoutSessionBody,
    checkout_session_object,
)
from guichet.schemas.payment import Customer
from guichet.schemas.validation import parse_object, validate
from guichet.webhooks import outbox

#: Sessions that one look of the worker reads, and ends at most.
LOOKED_AT: Final = 256
#: The newest payments of a session that are looked at for one that the customer can still confirm.
_ATTEMPTS: Final = 200


async def requested_session(ctx: AppContext, caller: Caller, raw: bytes) -> tuple[PaymentLink, dict[str, list[str]]]:
    """The body of a `POST /checkout-sessions` as a session that is not stored yet, and what forbids to make it now: a
    repeated request was right when it came first. Raises InvalidRequest for what was never right."""
    now = ctx.clock.now()
    body = validate(CheckoutSessionBody, parse_object(raw), {"development": ctx.settings.development, "raw": raw})
    expires_at = later(now, LASTS_HOURS * HOUR) if body.expires_at is None else body.expires_at
    catalogue = await ctx.catalogues.of(caller.merchant.id)
    faults: dict[str, list[str]] = {}
    if not now < expires_at <= later(now, LASTS_AT_MOST_DAYS * DAY):
        faults["expires_at"] = [f"Une date à venir, dans les {LASTS_AT_MOST_DAYS} jours, est attendue."]
    operators = None if body.operators is None else _operators(catalogue, body.operators, faults)
    session = PaymentLink(
        id=LinkId(0),
        merchant_id=caller.merchant.id,
        token=random_text(TOKEN_LENGTH),
        type=LIMITED,
        amount=body.amount,
        currency=body.currency,
        description=body.description,
        max_uses=1,
        reserved_uses=0,
        completed_uses=0,
        starts_at=None,
        expires_at=expires_at,
        created_at=now,
        external_id=body.external_id,
        metadata=body.metadata,
        return_url=body.return_url,
        test=not caller.livemode,
        session_reference=new_reference(now),
        session_status="open",
        cancel_url=body.cancel_url,
        operators=operators,
        customer=None if body.customer is None else _customer_text(body.customer),
    )
    return session, faults


def _operators(catalogue: Catalogue, codes: list[str], faults: dict[str, list[str]]) -> str:
    """The codes as the catalogue writes them, each once; a fault is added for one that cannot be chosen."""
    operators = []
    for code in codes:
        mode = catalogue.by_operator(code)
        if mode is None or not mode.active:
            faults["operators"] = [f"Aucun moyen de paiement ouvert à votre compte n'a le code « {code} »."]
        else:
            operators.append(mode.operator)
    return ",".join(dict.fromkeys(operators))


def _customer_text(customer: Customer) -> str:
    return json.encode(customer.model_dump(exclude_none=True)).decode()


def known_customer(session: PaymentLink) -> dict[str, Any]:
    return {} if session.customer is None else json.decode(session.customer, type=dict[str, Any])


async def payments_of(ctx: AppContext, session: PaymentLink) -> list[Payment]:
    """Newest first."""
    return await repository.of_link(ctx.db, session.id, _ATTEMPTS)


async def check_open(ctx: AppContext, tx: Transaction, payment: Payment) -> None:
    """For a payment that was inserted in this transaction, which has locked its link. Raises Conflict if its session
    is open no more, AttemptOpen if the customer can still confirm another payment of it; then roll it back."""
    session_id = require(payment.link_id)
    session = await link_repository.lock(tx, session_id)
    if session.session_status != "open":
        raise Conflict
    others = [attempt for attempt in await repository.of_link(tx, session_id, _ATTEMPTS) if attempt.id != payment.id]
    if attempts.current(ctx, others) is not None:
        raise attempts.AttemptOpen


async def complete(tx: Transaction, payment: Payment, now: Instant, pages_url: str) -> None:
    """The session is paid by this payment, which succeeded in this transaction and is kept."""
    session = await session_repository.complete(tx, require(payment.link_id), payment.reference)
    if session is not None:
        await _emit(tx, SESSION_COMPLETED, session, payment.id, now, pages_url)


async def expire(ctx: AppContext, session_id: LinkId) -> PaymentLink:
    """The session, closed; one that has expired stays as it is. Raises Conflict if a payment completed it, or still
    can."""
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        session = await link_repository.lock(tx, session_id)
        pending = await session_repository.pending_payment(tx, session_id)
        if pending is not None:
            raise Conflict(
                "Un paiement de cette session est encore en attente : attendez-en la fin.",
                reason="session_pending",
                reference=pending,
            )
        if session.session_status == "completed":
            raise Conflict("Cette session est payée.", reason="session_completed", reference=session.payment_reference)
        expired = await session_repository.expire(tx, session_id, now)
        if expired is None:
            return session
        begun = await repository.of_link(tx, session_id, 1)
        newest = begun[0].id if begun else None
        await _emit(tx, SESSION_EXPIRED, expired, newest, now, f"{ctx.settings.public_url}/pay")
    ctx.wakeups.deliveries.set()
    return expired


class DueSessions:
    """Ends sessions whose time has passed, by two walks along their ends: one comes to each once, soon after its end;
    the other comes again and again to those that had a pending payment then. However many of these there are, a turn
    has a fixed cost, and the sessions that end meanwhile do not wait for them."""

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx
        self._newest: DueSession | None = None
        self._again: DueSession | None = None

    async def step(self) -> bool:
        """Whether the next turn should come at once."""
        looked_at = await self._end_after(self._newest)
        if looked_at:
            self._newest = looked_at[-1]
        if len(looked_at) == LOOKED_AT:
            return True
        looked_at = await self._end_after(self._again)
        is_full = len(looked_at) == LOOKED_AT
        self._again = looked_at[-1] if is_full else None
        return is_full and not all(session.is_pending for session in looked_at)

    async def _end_after(self, place: DueSession | None) -> list[DueSession]:
        due = await session_repository.due(self._ctx.db, self._ctx.clock.now(), LOOKED_AT, place)
        for session in due:
            if not session.is_pending:
                with suppress(Conflict):  # A payment was begun in time, or has completed it.
                    await expire(self._ctx, session.id)
        return due


async def _emit(
    tx: Transaction, name: EventName, session: PaymentLink, payment_id: PaymentId | None, now: Instant, pages_url: str
) -> None:
    """`payment_id`: the payment whose events this one follows."""
    data = checkout_session_object(session, pages_url)
    await outbox.emit_other(tx, outbox.new_event(session.merchant_id, session.env, name, data, now, payment_id))
