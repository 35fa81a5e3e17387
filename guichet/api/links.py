"""POST /payment-links, GET /payment-links, GET /payment-links/{id} (docs/contract.md, "Endpoints"). Live only."""

import re
from typing import Final

from starlette.responses import Response

from guichet.api.http import Call, requested_page, success_response, unknown_row
from guichet.clock import Instant, iso
from guichet.db.engine import require
from guichet.domain.errors import InvalidRequest, NotFound
from guichet.domain.ids import LinkId
from guichet.domain.merchants import random_text
from guichet.domain.payment_links import PaymentLink
from guichet.domain.warnings import RequestWarning, warning
from guichet.payments import link_repository as links
from guichet.schemas.json_codec import has_suspect_escape, parse_object
from guichet.schemas.payment_link import LinkBody, PaymentLinkObject, payment_link_object
from guichet.schemas.validation import check_decimals, invalid_request, metadata_text, validate

#: Letters and digits of a link's token, 261 random bits; its address shows them as two parts of 22.
TOKEN_LENGTH: Final = 44
_ID: Final = re.compile(r"[0-9]{1,19}")
_MAX_ID: Final = 2**63 - 1


async def create_link(call: Call) -> Response:
    """The new link, or the one that has the body's external_id already."""
    if not call.caller.livemode:
        raise InvalidRequest("Les liens de paiement n'existent qu'en production : utilisez une clé de production.")
    wanted = await _wanted_link(call)
    db = call.ctx.db
    link = await links.insert_new(db, wanted)
    if link is None:
        link = require(await links.by_external_id(db, call.merchant_id, require(wanted.external_id)))
        await db.wait_for_replication()  # The request that made it may still wait for the standby (D69).
    return success_response(_link_object(call, link), 201, warnings=_born_expired(link, wanted.created_at))


async def _wanted_link(call: Call) -> PaymentLink:
    """The body as a link that is not stored yet. Raises InvalidRequest."""
    raw = await call.body()
    values, suspect = parse_object(raw), has_suspect_escape(raw)
    body = validate(LinkBody, values, {**call.validation_context, "suspect": suspect})
    currency = call.caller.merchant.currency
    faults = {}
    if values.get("currency") not in (None, currency):
        faults["currency"] = [f"La devise d'un lien est celle de votre compte, {currency} : retirez ce champ."]
    try:
        check_decimals(body.amount, currency)
    except ValueError as error:
        faults["amount"] = [str(error)]
    if faults:
        raise invalid_request(faults)
    return PaymentLink(
        id=LinkId(0),
        merchant_id=call.merchant_id,
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
        created_at=call.ctx.clock.now(),
        external_id=body.external_id,
        metadata=metadata_text(raw, body.metadata, suspect=suspect),
        return_url=body.return_url,
    )


def _born_expired(link: PaymentLink, now: Instant) -> list[RequestWarning]:
    if link.expires_at is None or now < link.expires_at:
        return []
    return [warning("link_already_expired", expires_at=iso(link.expires_at))]


async def list_links(call: Call) -> Response:
    page = requested_page(call.request)
    before = None if page.after is None else await _find_link(call, page.after)
    if page.after is not None and before is None:
        raise unknown_row()
    if not call.caller.livemode:
        return success_response([], meta=page.meta(0))
    after = None if before is None else before.id
    rows, total = await links.page(
        call.ctx.db, call.merchant_id, page.size, page.offset, after=after, oldest_first=page.oldest_first
    )
    return success_response([_link_object(call, row) for row in rows], meta=page.meta(total))


async def read_link(call: Call) -> Response:
    link = await _find_link(call, call.path_text("id"))
    if link is None:
        raise NotFound("Aucun lien de paiement de votre compte ne porte ce numéro.")
    return success_response(_link_object(call, link))


async def _find_link(call: Call, text: str) -> PaymentLink | None:
    """The merchant's link with this id; links are live only."""
    if call.caller.livemode and _ID.fullmatch(text) and int(text) <= _MAX_ID:
        return await links.by_id(call.ctx.db, call.merchant_id, LinkId(int(text)))
    return None


def _link_object(call: Call, link: PaymentLink) -> PaymentLinkObject:
    return payment_link_object(link, f"{call.ctx.settings.public_url}/pay")
