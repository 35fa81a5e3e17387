"""Creates and closes payment links, from the API and from the console (docs/contract.md, "Requests").

In the API links are live only (D17). People make test links in the console.
"""

from typing import Any, Final

from msgspec import structs

from guichet.audit_log import entries as audit_log
from guichet.clock import MINUTE, Clock, Instant, iso, later
from guichet.db.engine import Database, Reader, Transaction, require
from guichet.domain.accounts import UserId
from guichet.domain.audit_log import Act, Actor, Facts
from guichet.domain.errors import Conflict, InvalidRequest, MerchantInactive
from guichet.domain.ids import LinkId
from guichet.domain.merchants import Caller, random_text
from guichet.domain.money import plain
from guichet.domain.payment_links import LIMITED, PaymentLink
from guichet.domain.records import Record
from guichet.links import repository as link_repository
from guichet.links import session_repository
from guichet.merchants import idempotency
from guichet.merchants import limits as merchant_limits
from guichet.merchants.idempotency import IdempotencyKey
from guichet.schemas.payment_link import LinkBody
from guichet.schemas.validation import check_decimals, invalid_request, parse_object, validate
from guichet.settings import Settings

#: Letters and digits of a link's token, 261 random bits; its address shows them as two parts of 22.
TOKEN_LENGTH: Final = 44
#: How long a customer at the cash desk may take to open the page: longer than anybody stands there, and so short that
#: nobody pays an old amount on the next day. A payment that was begun in time succeeds later, too.
CASH_DESK_LASTS: Final = 15 * MINUTE
#: The external_id of a link of the cash desk begins with this; the rest is the token of the form that made it.
CASH_DESK_PREFIX: Final = "caisse-"


#: What two forms must agree in to be the same link.
_SAME: Final = ("type", "amount", "description", "max_uses", "starts_at", "metadata", "return_url", "cash_desk")


class ExternalIdTaken(Conflict):
    """Another link of the merchant has this external_id."""

    def __init__(self, link_id: LinkId) -> None:
        super().__init__(f"Le lien n° {link_id} porte déjà cet identifiant.")
        self.link_id = link_id


def requested_link(clock: Clock, settings: Settings, caller: Caller, raw: bytes) -> PaymentLink:
    """The body of a `POST /payment-links` as a link that is not stored yet. Raises InvalidRequest with every fault."""
    values = parse_object(raw)
    body = validate(LinkBody, values, {"development": settings.development, "raw": raw})
    currency = caller.merchant.currency
    faults = _money_faults(values, body, caller)
    if faults:
        raise invalid_request(faults)
    return PaymentLink(
        id=LinkId(0),
        merchant_id=caller.merchant.id,
        token=random_text(TOKEN_LENGTH),
        type=body.type,
        amount=body.amount,
        currency=currency,
        description=body.description,
        max_uses=body.max_uses,
        reserved_uses=0,
        completed_uses=0,
        starts_at=body.starts_at,
        expires_at=body.expires_at,
        created_at=clock.now(),
        external_id=body.external_id,
        metadata=body.metadata,
        return_url=body.return_url,
        test=not caller.livemode,
    )


def _money_faults(values: dict[str, Any], body: LinkBody, caller: Caller) -> dict[str, list[str]]:
    currency, faults = caller.merchant.currency, {}
    if values.get("currency") not in (None, currency):
        faults["currency"] = [f"La devise d'un lien est celle de votre compte, {currency} : retirez ce champ."]
    try:
        check_decimals(body.amount, currency)
    except ValueError as error:
        faults["amount"] = [str(error)]
    return faults


class CreatedLink(Record, frozen=True):
    """`created` is False when the link existed already."""

    link: PaymentLink
    created: bool


async def _check_limits(db: Database, caller: Caller, new_link: PaymentLink) -> None:
    """Raises OverMerchantLimit for a new live link that nobody could ever pay. One that exists stays as it is."""
    sentence = merchant_limits.never_taken(caller.merchant, new_link.amount) if caller.livemode else None
    if sentence is None:
        return
    if await _of_external_id(db, new_link) is None:
        raise merchant_limits.OverMerchantLimit(sentence)


async def create_link(
    db: Database, caller: Caller, new_link: PaymentLink, key: IdempotencyKey | None = None
) -> CreatedLink:
    """The new link, or the one that has its external_id or `key` already; without a key in one statement without a
    transaction. Raises OverMerchantLimit, and Conflict if `key` is that of another request."""
    stored = None if key is None else await created_before(db, new_link, key)
    if stored is None:
        await _check_limits(db, caller, new_link)
        link = await _insert(db, new_link, key)
        if link is not None:
            return CreatedLink(link, created=True)
        async with db.transaction() as tx:  # Which sees what SQLite is committing just now.
            stored = require(await created_before(tx, new_link, key))
    await db.wait_for_replication()  # The request that made it may still wait for the standby.
    return CreatedLink(stored, created=False)


async def created_before(db: Reader, new_link: PaymentLink, key: IdempotencyKey | None) -> PaymentLink | None:
    """The link, or session, that has the external_id of a new one, or was made by a request with its `key`. Raises
    Conflict if `key` is that of another request."""
    if link := await _of_external_id(db, new_link):
        return link
    merchant_scope, link_id = (new_link.merchant_id, new_link.env), await idempotency.find(db, key)
    return None if link_id is None else await link_repository.any_by_id(db, *merchant_scope, LinkId(int(link_id)))


async def _of_external_id(db: Reader, new_link: PaymentLink) -> PaymentLink | None:
    """The link, or the checkout session, that has the external_id of a new one."""
    if new_link.external_id is None:
        return None
    find = link_repository.by_external_id if new_link.session_reference is None else session_repository.by_external_id
    return await find(db, new_link.merchant_id, new_link.env, new_link.external_id)


async def _insert(db: Database, new_link: PaymentLink, key: IdempotencyKey | None) -> PaymentLink | None:
    """The link as stored; None if another one has its external_id or `key`."""
    if key is None:
        return await link_repository.insert_new(db, new_link)
    try:
        async with db.transaction() as tx:
            link = await link_repository.insert_new(tx, new_link)
            if link is not None and not await idempotency.claim(tx, key, str(link.id), new_link.created_at):
                raise idempotency.reused()  # Undoes the link; perhaps the same request came twice at the same time.
    except Conflict:
        return None
    return link


async def create_link_by_hand(db: Database, caller: Caller, new_link: PaymentLink, actor: Actor) -> CreatedLink:
    """As `create_link`, by a person: the audit log says who. A form that is sent twice makes one link.

    Raises MerchantInactive, OverMerchantLimit, and ExternalIdTaken if a link that asks for something else has the
    external_id.
    """
    if caller.livemode and caller.merchant.status != "active":
        raise MerchantInactive
    await _check_limits(db, caller, new_link)
    async with db.transaction() as tx:
        link = await link_repository.insert_new(tx, new_link)
        if link is not None:
            await audit_log.record(tx, _act(actor, "link.created", link, {}, _facts(link)), new_link.created_at)
            return CreatedLink(link, created=True)
    result = await create_link(db, caller, new_link)
    if not _is_same(result.link, new_link):
        raise ExternalIdTaken(result.link.id)
    return result


def _is_same(link: PaymentLink, new_link: PaymentLink) -> bool:
    # A second click at the cash desk comes a moment later, and so would the end of its link.
    names = _SAME if link.cash_desk else (*_SAME, "expires_at")
    return all(getattr(link, name) == getattr(new_link, name) for name in names)


def cash_desk_link(
    clock: Clock, settings: Settings, caller: Caller, raw: bytes, cashier: UserId | None = None
) -> PaymentLink:
    """A sale at the cash desk: a link for one payment that ends soon. Raises InvalidRequest."""
    new_link = requested_link(clock, settings, caller, raw)
    if new_link.external_id is None or not new_link.external_id.startswith(CASH_DESK_PREFIX):
        raise InvalidRequest
    ends = later(new_link.created_at, CASH_DESK_LASTS)
    return structs.replace(new_link, type=LIMITED, max_uses=1, expires_at=ends, cash_desk=True, cashier_id=cashier)


async def close_link(db: Database, clock: Clock, link: PaymentLink, actor: Actor) -> PaymentLink:
    """The link, closed from now on. One that has ended stays as it is. A payment that was begun can still succeed; that
    of a sale, which is cancelled by this unless it is paid, is refunded then (`refunds/automatic.py`)."""
    now = clock.now()
    async with db.transaction() as tx:
        closed = await link_repository.close(tx, link, now)
        if closed is None:
            return link
        await _record_close(tx, link, closed, actor, now)
    return closed


async def _record_close(tx: Transaction, link: PaymentLink, closed: PaymentLink, actor: Actor, now: Instant) -> None:
    before: Facts = {"expires_at": None if link.expires_at is None else iso(link.expires_at)}
    act = _act(actor, "link.closed", closed, before, {"expires_at": iso(now)})
    await audit_log.record(tx, act, now)


def _act(actor: Actor, action: str, link: PaymentLink, before: Facts, after: Facts) -> Act:
    return Act(actor, action, "payment_link", str(link.id), link.merchant_id, before=before, after=after)


def _facts(link: PaymentLink) -> Facts:
    """What the audit log keeps of a new link. What the merchant wrote into it stays in the link."""
    return {
        "env": link.env,
        "amount": plain(link.amount),
        "currency": link.currency,
        "max_uses": link.max_uses,
        "expires_at": None if link.expires_at is None else iso(link.expires_at),
        "cash_desk": link.cash_desk,
    }
