"""A merchant's file: who it is, what it may do, its team, its wallets; and the acts that change it."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts import mail_links, users
from guichet.accounts.invitations import withdraw
from guichet.back_office import merchants as administration
from guichet.back_office.merchant_limits import read_amount, read_rate, set_limits
from guichet.console.admin.fields import reason_of, row_number
from guichet.console.admin.merchants.first_owner import has_owner, invite_owner
from guichet.console.admin.merchants.of_merchant import address, merchant_of, show_file
from guichet.console.admin.reads import record_read
from guichet.console.forms import is_confirmed
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.domain.catalogue import MAX_DEBIT, MIN_DEBIT
from guichet.domain.merchants import ENVS, MERCHANT_STATUSES, Merchant, MerchantLimits, merchant_name
from guichet.domain.money import Hundredths, plain
from guichet.ledger import wallets
from guichet.merchants import api_keys
from guichet.merchants import limits as merchant_limits
from guichet.merchants import repository as merchants
from guichet.settings import parsers


async def show(request: StaffRequest) -> Response:
    return await _page(request, await merchant_of(request))


async def change(request: StaffRequest) -> Response:
    """Changes the status, the limits, the name or the time zone, invites the first owner, or takes an invitation to
    the team back."""
    form = await request.form()
    request.require("merchants.change")
    merchant = await merchant_of(request)
    match form.get("act"):
        case "status":
            fault = await _set_status(request, merchant, form)
        case "name":
            fault = await _set_name(request, merchant, form)
        case "limits":
            fault = await _set_limits(request, merchant, form)
        case "invite":
            fault = await invite_owner(request, merchant, form)
        case "withdraw":
            fault = await _withdraw(request, merchant, form)
        case "time_zone":
            fault = await _set_time_zone(request, merchant, form)
        case _:
            fault = request.text("admin_merchants.incomplete")
    if fault is not None:
        return await _page(request, merchant, 422, fault, form)
    return request.redirect(address(request, merchant, done="saved"))


async def _set_status(request: StaffRequest, merchant: Merchant, form: dict[str, str]) -> Any:
    """What is wrong with the form; None when it is done."""
    status = next((each for each in MERCHANT_STATUSES if each == form.get("status")), None)
    reason = reason_of(form)
    if status is None or reason is None:
        return request.text("admin_merchants.reason_missing")
    if status != "active" and not is_confirmed(form):
        return request.text("admin_merchants.confirm_missing")
    await administration.set_status(request.db, request.ctx.clock, merchant.id, status, request.actor, reason)
    return None


async def _set_name(request: StaffRequest, merchant: Merchant, form: dict[str, str]) -> Any:
    name = merchant_name(form.get("name", ""))
    if name is None:
        return request.text("admin_merchants.incomplete")
    await administration.set_name(request.db, request.ctx.clock, merchant.id, name, request.actor)
    return None


async def _set_time_zone(request: StaffRequest, merchant: Merchant, form: dict[str, str]) -> Any:
    typed = form.get("time_zone", "").strip()
    try:
        zone = str(parsers.time_zone(typed)) if typed else None
    except ValueError:
        return request.text("admin_merchants.zone_unknown")
    await administration.set_time_zone(request.db, request.ctx.clock, merchant.id, zone, request.actor)
    return None


async def _set_limits(request: StaffRequest, merchant: Merchant, form: dict[str, str]) -> Any:
    """An empty field is the common limit."""
    typed = {name: form.get(name, "").strip() for name in ("rate_limit", "payment_limit", "daily_limit")}
    rate, payment, day = (
        read(text) if text else None
        for read, text in zip((read_rate, read_amount, read_amount), typed.values(), strict=True)
    )
    reason = reason_of(form)
    wanted = MerchantLimits(
        rate, None if payment is None else Hundredths(payment), None if day is None else Hundredths(day)
    )
    if any(text and getattr(wanted, name) is None for name, text in typed.items()):
        return request.text("admin_merchants.limits_wrong")
    if reason is None:
        return request.text("admin_merchants.reason_needed")
    await set_limits(request.db, request.ctx.clock, merchant.id, wanted, request.actor, reason)
    return None


async def _withdraw(request: StaffRequest, merchant: Merchant, form: dict[str, str]) -> Any:
    """Nothing happens if the invitation was answered meanwhile."""
    number = row_number(form.get("invitation"))
    if number is None:
        return request.text("admin_merchants.incomplete")
    ctx = request.ctx
    async with ctx.db.transaction() as tx:
        await withdraw(tx, merchant.id, number, request.actor, ctx.clock.now())
    return None


async def _page(
    request: StaffRequest,
    merchant: Merchant,
    status: int = 200,
    fault: Any = None,
    form: dict[str, str] | None = None,
) -> Response:
    """The read is in the audit log: the page names the people of the team."""
    ctx = request.ctx
    await record_read(request, "merchant.read", "merchant", merchant.id, merchant.id)
    now = ctx.clock.now()
    day = merchant_limits.day_of(merchant, now, ctx.settings.time_zone)
    keys = [key for key in await api_keys.list_of(ctx.db, merchant.id) if key.revoked_at is None]
    usable = [key for key in keys if key.expires_at is None or key.expires_at > now]
    team = await users.team(ctx.db, merchant.id)
    view = {
        "team": team,
        "may_invite": request.may("merchants.change") and not has_owner(team),
        "invited": await mail_links.open_offers(ctx.db, merchant.id, now),
        "api_keys": [(env, sum(key.env == env for key in usable)) for env in ENVS],
        "endpoints": [await merchants.endpoint(ctx.db, merchant.id, env) for env in ENVS],
        "wallets": await wallets.wallets_of(ctx.db, merchant.id) if request.may("wallets.view") else None,
        "bounds": (MIN_DEBIT, MAX_DEBIT),
        "common_rate": ctx.settings.rate_limit,
        "today": await merchant_limits.total_of(ctx.db, merchant.id, day) if merchant.daily_limit is not None else None,
        "zone": merchant.time_zone or str(ctx.settings.time_zone),
        "statuses": MERCHANT_STATUSES,
        "may_change": request.may("merchants.change"),
        "done": request.query.get("done"),
        "typed": form or _present(merchant),
    }
    return show_file(request, merchant, "file", status, fault=fault, **view)


def _present(merchant: Merchant) -> dict[str, str]:
    """What the forms hold when nothing was typed."""
    amounts = {"payment_limit": merchant.payment_limit, "daily_limit": merchant.daily_limit}
    return {
        "status": merchant.status,
        "name": merchant.name,
        "time_zone": merchant.time_zone or "",
        "rate_limit": str(merchant.rate_limit or ""),
        **{name: "" if amount is None else plain(amount) for name, amount in amounts.items()},
    }


PAGES: Final = (StaffPage("/merchants/{merchant:row}", "merchants.view", show, change),)
