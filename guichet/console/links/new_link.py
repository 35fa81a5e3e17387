"""A new link. Its form becomes the body that the API would get, so that the same rules and sentences hold for both."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

from starlette.responses import Response

from guichet.console.forms import form_token
from guichet.console.page_request import FormFault, MerchantRequest
from guichet.domain.errors import InvalidRequest, MerchantInactive
from guichet.domain.merchants import Caller
from guichet.domain.money import DECIMALS
from guichet.domain.payment_links import LIMITED, PERMANENT
from guichet.links.links import ExternalIdTaken, create_link_by_hand, requested_link
from guichet.schemas.validation import parse_object

_SPACES: Final = re.compile(r"[\s\u00a0\u202f]")
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,2})?")
#: In `5.000` and `5,000` somebody means thousands.
_THOUSANDS: Final = re.compile(r"-?[0-9]{1,3}(\.[0-9]{3}){1,4}")
_TEXTS: Final = ("description", "external_id", "return_url")
_DATES: Final = ("starts_at", "expires_at")
_NO_OBJECT: Final = 'Un objet JSON est attendu, par exemple {"commande": 42}.'
_NO_THOUSANDS: Final = "Écrivez 5000 ou 5 000 : un point ou une virgule sépare les décimales."
#: The external_id of a link for which the merchant typed none begins with this.
_PREFIX: Final = "lien-"
_FIELDS: Final = frozenset(
    ("amount", "description", "type", "max_uses", "starts_at", "expires_at", "external_id", "metadata", "return_url")
)


async def show(request: MerchantRequest) -> Response:
    currency = request.merchant.currency
    return request.page(
        "links/new.html",
        currency=currency,
        inputmode="decimal" if DECIMALS[currency] else "numeric",
        limited=LIMITED,
        permanent=PERMANENT,
        time_zone=str(request.time_zone),
    )


async def create(request: MerchantRequest) -> Response:
    """Makes the link, once, and goes to its page; or the form with what was typed and a sentence at each faulty
    field."""
    form = await request.fields()
    ctx, caller = request.ctx, Caller(request.merchant, request.env)
    request.require("links.change")
    token = form_token(form)
    if token is None:
        raise FormFault(request.text("links.again"))
    try:
        order = requested_link(ctx.clock, ctx.settings, caller, link_body(form, _PREFIX + token, request.time_zone))
        created = await create_link_by_hand(ctx.db, caller, order, request.actor)
    except InvalidRequest as error:
        raise _fault(request, error.details or {"": [error.message]}) from None
    except ExternalIdTaken as error:
        if form.get("external_id", "").strip():
            raise _fault(request, {"external_id": [error.message]}, 409) from None
        del form["form"]  # The same form, changed after it was sent.
        raise FormFault(request.text("links.again"), 409) from None
    except MerchantInactive as error:
        raise FormFault(error.message, 403) from None
    return request.done(request.merchant_url(f"/links/{created.link.id}"), "link_made")


def _fault(request: MerchantRequest, faults: Mapping[str, list[str]], status: int = 422) -> FormFault:
    at_fields: dict[str, list[str]] = {}
    elsewhere: list[str] = []  # Faults of what is no field of the form stand above it.
    for name, sentences in faults.items():
        field = name.partition(".")[0]
        if field in _FIELDS:
            at_fields[field] = sentences
        else:
            elsewhere += sentences
    return FormFault(" ".join(elsewhere) or request.text("links.faults"), status, at_fields)


def json_number(form: Mapping[str, str], field: str) -> str:
    """`5 000`, `5000` or `12,50` as a JSON number; any other text as a JSON string, which the rules then refuse.

    Raises InvalidRequest for `5.000`, which they would take for five.
    """
    text = form.get(field, "")
    compact = _SPACES.sub("", text).replace(",", ".")
    if _THOUSANDS.fullmatch(compact):
        raise InvalidRequest(_NO_THOUSANDS, {field: [_NO_THOUSANDS]})
    if not compact:
        return "null"
    return str(Decimal(compact)) if _NUMBER.fullmatch(compact) else json.dumps(text)


def link_body(form: Mapping[str, str], external_id: str, time_zone: ZoneInfo) -> bytes:
    """The JSON of `POST /payment-links`. `external_id`: if none was typed; `time_zone`: of the dates that were typed.

    Raises InvalidRequest if the metadata are no JSON object, or a number is not clear.
    """
    members = {name: json.dumps(form.get(name, "").strip() or None) for name in _TEXTS}
    if members["external_id"] == "null":
        members["external_id"] = json.dumps(external_id)
    members["amount"] = json_number(form, "amount")
    if form.get("type") == LIMITED:
        members |= {"type": json.dumps(LIMITED), "max_uses": json_number(form, "max_uses")}
    members |= {name: json.dumps(_date(form.get(name, "").strip(), time_zone)) for name in _DATES}
    members["metadata"] = _metadata(form.get("metadata", "").strip())
    return ("{" + ",".join(f'"{name}":{value}' for name, value in members.items()) + "}").encode(errors="replace")


def _date(text: str, time_zone: ZoneInfo) -> str | None:
    """A date of a form, which has no offset, as ISO-8601; a text that is no date as it is."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text or None
    return moment.isoformat() if moment.tzinfo else moment.replace(tzinfo=time_zone).isoformat()


def _metadata(text: str) -> str:
    if not text:
        return "null"
    try:
        # Nothing but an object, so that the text cannot add members beside it.
        parse_object(text.encode(errors="replace"))
        json.loads(text)
    except (InvalidRequest, ValueError, RecursionError):
        raise InvalidRequest(_NO_OBJECT, {"metadata": [_NO_OBJECT]}) from None
    return text
