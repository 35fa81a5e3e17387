"""The form of a new link."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from guichet.console.forms import form_token, new_form_token
from guichet.console.links.link_form import link_body
from guichet.console.links.views import caller
from guichet.console.page_request import MerchantRequest
from guichet.domain.errors import InvalidRequest, MerchantInactive
from guichet.domain.money import DECIMALS
from guichet.domain.payment_links import LIMITED, PERMANENT
from guichet.links.links import ExternalIdTaken, create_link_by_hand, wanted_link

#: The external_id of a link for which the merchant typed none begins with this.
_PREFIX: Final = "lien-"
_FIELDS: Final = frozenset(
    ("amount", "description", "type", "max_uses", "starts_at", "expires_at", "external_id", "metadata", "return_url")
)


async def show(request: MerchantRequest) -> Response:
    return _page(request, {}, new_form_token())


async def create(request: MerchantRequest) -> Response:
    """Makes the link, once, and goes to its page; or the form with what was typed and a sentence at each faulty
    field."""
    form = await request.fields()
    ctx = request.ctx
    request.require("links.change")
    token = form_token(form)
    if token is None:
        return _page(request, form, new_form_token(), 422, fault=request.text("links.again"))
    try:
        wanted = wanted_link(
            ctx.clock, ctx.settings, caller(request), link_body(form, _PREFIX + token, request.time_zone)
        )
        made = await create_link_by_hand(ctx.db, caller(request), wanted, request.actor)
    except InvalidRequest as error:
        return _page(request, form, token, 422, error.details or {"": [error.message]})
    except ExternalIdTaken as error:
        if not form.get("external_id", "").strip():  # The same form, changed after it was sent.
            return _page(request, form, new_form_token(), 409, fault=request.text("links.again"))
        return _page(request, form, token, 409, {"external_id": [error.message]})
    except MerchantInactive as error:
        return _page(request, form, token, 403, fault=error.message)
    return request.redirect(request.here(f"/links/{made.link.id}"))


def _page(
    request: MerchantRequest,
    form: Mapping[str, str],
    token: str,
    status: int = 200,
    faults: Mapping[str, list[str]] | None = None,
    fault: Any = None,
) -> Response:
    found = faults or {}
    # Faults of what is no field of the form stand above it.
    elsewhere = [sentence for name, each in found.items() if name.partition(".")[0] not in _FIELDS for sentence in each]
    at_fields = {name: each for name, each in found.items() if name in _FIELDS}
    at_fields |= {name.partition(".")[0]: each for name, each in found.items() if name.partition(".")[0] in _FIELDS}
    if fault is None and found:
        fault = " ".join(elsewhere) or request.text("links.faults")
    return request.show(
        "links/new.html",
        status,
        typed=form,
        token=token,
        faults=at_fields,
        fault=fault,
        currency=request.merchant.currency,
        inputmode="decimal" if DECIMALS[request.merchant.currency] else "numeric",
        limited=LIMITED,
        permanent=PERMANENT,
        time_zone=str(request.time_zone),
    )
