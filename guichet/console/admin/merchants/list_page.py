"""The merchants: list, search, and a new one."""

from typing import Any, Final, get_args

from starlette.responses import Response

from guichet.accounts import users
from guichet.back_office.errors import NewerMerchant
from guichet.back_office.merchants import create_merchant, newest
from guichet.console.admin.fields import MAX_ID, before, row_number
from guichet.console.admin.reads import record_read
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.domain.accounts import normal_email
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import MERCHANT_STATUSES, Merchant, MerchantStatus, merchant_name
from guichet.domain.money import DEFAULT_CURRENCY, Currency
from guichet.merchants import repository as merchants

_CURRENCIES: Final[tuple[Currency, ...]] = get_args(Currency)
_MAX_SEARCH: Final = 100


async def show(request: StaffRequest) -> Response:
    """Newest first."""
    return _list(request, await merchants.page(request.db, before(request)), "")


async def find(request: StaffRequest) -> Response:
    """By id, e-mail address of somebody in the team, or a part of the name. A POST, because what is typed may be
    personal: it must not stay in addresses and their logs."""
    form = await request.form()
    request.require("merchants.view")
    wanted = form.get("q", "").strip()[:_MAX_SEARCH]
    if not wanted:
        return request.redirect(request.at_admin("/merchants"))
    found = await _search(request, wanted, row_number(form.get("before")) or MAX_ID)
    return _list(request, found, wanted)


def _list(request: StaffRequest, found: list[Merchant], wanted: str) -> Response:
    shown = found[: merchants.PAGE]
    next_before = str(shown[-1].id) if len(found) > merchants.PAGE else None
    view = {
        "found": shown,
        "q": wanted,
        "next_before": next_before,
        "older": request.at_admin("/merchants", before=next_before) if next_before and not wanted else None,
        "may_create": request.may("merchants.change"),
    }
    return request.show("admin/merchants/list.html", 200, **view)


async def _search(request: StaffRequest, wanted: str, below: int) -> list[Merchant]:
    db = request.db
    if (number := row_number(wanted)) is not None:
        one = await merchants.get(db, MerchantId(number))
        return [one] if one else []
    if (email := normal_email(wanted)) is not None:
        user = await users.by_email(db, email)
        # The address is personal: the log says who was found by it, not what was typed.
        await record_read(request, "user.searched", "user", user.id if user else "none")
        # At most one page: nobody works for more merchants.
        return [merchant for _, merchant in await users.merchants_of(db, user.id)][: merchants.PAGE] if user else []
    return await merchants.named(db, wanted, below)


async def show_new(request: StaffRequest) -> Response:
    request.require("merchants.change")
    return await _form(request)


async def create(request: StaffRequest) -> Response:
    """Without API keys: nobody of the staff sees those of a merchant. Its owner makes them in the console."""
    form = await request.form()
    ctx = request.ctx
    request.require("merchants.change")
    name = merchant_name(form.get("name", ""))
    status = next((each for each in MERCHANT_STATUSES if each == form.get("status")), None)
    currency = next((each for each in _CURRENCIES if each == form.get("currency")), None)
    if name is None or status is None or currency is None:
        return await _form(request, 422, request.text("admin_merchants.incomplete"), form)
    after = row_number(form.get("after")) or 0
    try:
        merchant, _ = await create_merchant(ctx, name, status, currency, {}, request.actor, after)
    except NewerMerchant:
        return await _form(request, 409, request.text("admin_merchants.sent_twice"), form)
    return request.redirect(request.at_admin(f"/merchants/{merchant.id}", done="created"))


async def _form(
    request: StaffRequest, status: int = 200, fault: Any = None, form: dict[str, str] | None = None
) -> Response:
    typed = form or {"status": _FIRST_STATUS, "currency": DEFAULT_CURRENCY}
    after = await newest(request.db)
    choices = {"statuses": MERCHANT_STATUSES, "currencies": _CURRENCIES}
    return request.show("admin/merchants/new.html", status, fault=fault, typed=typed, after=after, **choices)


#: Until its file is complete, a new merchant only has the test environment.
_FIRST_STATUS: Final[MerchantStatus] = "pending"

PAGES: Final = (
    StaffPage("/merchants", "merchants.view", show, find, menu="merchants"),
    StaffPage("/merchants/new", "merchants.change", show_new, create),
)
