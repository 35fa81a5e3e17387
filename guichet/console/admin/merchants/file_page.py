"""A merchant's file: who it is, what it may do, its team, its wallets; and the acts that change it."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts import mail_links, users
from guichet.accounts.invitations import withdraw
from guichet.accounts.rights import StaffMember
from guichet.back_office import merchants as administration
from guichet.back_office.merchant_limits import read_amount, read_rate, set_limits
from guichet.console.admin.fields import reason_of, row_number
from guichet.console.admin.merchants.first_owner import has_owner, invite_owner
from guichet.console.admin.merchants.of_merchant import address, merchant_of, show_file
from guichet.console.admin.reads import record_read
from guichet.console.forms import is_confirmed
from guichet.console.sections import StaffPage
from guichet.console.visit import Visit
from guichet.domain.catalogue import MAX_DEBIT, MIN_DEBIT
from guichet.domain.merchants import ENVS, MERCHANT_STATUSES, Merchant, MerchantLimits, merchant_name
from guichet.domain.money import Hundredths, plain
from guichet.ledger import wallets
from guichet.merchants import api_keys
from guichet.merchants import limits as merchant_limits
from guichet.merchants import repository as merchants
from guichet.settings import parsers


async def show(visit: Visit, acting: StaffMember) -> Response:
    return await _page(visit, acting, await merchant_of(visit))


async def change(visit: Visit, acting: StaffMember) -> Response:
    """Changes the status, the limits, the name or the time zone, invites the first owner, or takes an invitation to
    the team back."""
    form = await visit.form()
    ctx = visit.console.ctx
    acting.require("merchants.change", ctx.clock.now())
    merchant = await merchant_of(visit)
    match form.get("act"):
        case "status":
            fault = await _set_status(visit, acting, merchant, form)
        case "name":
            fault = await _set_name(visit, acting, merchant, form)
        case "limits":
            fault = await _set_limits(visit, acting, merchant, form)
        case "invite":
            fault = await invite_owner(visit, acting, merchant, form)
        case "withdraw":
            fault = await _withdraw(visit, acting, merchant, form)
        case "time_zone":
            fault = await _set_time_zone(visit, acting, merchant, form)
        case _:
            fault = visit.text("admin_merchants.incomplete")
    if fault is not None:
        return await _page(visit, acting, merchant, 422, fault, form)
    return visit.redirect(address(visit, merchant, done="saved"))


async def _set_status(visit: Visit, acting: StaffMember, merchant: Merchant, form: dict[str, str]) -> Any:
    """What is wrong with the form; None when it is done."""
    status = next((each for each in MERCHANT_STATUSES if each == form.get("status")), None)
    reason = reason_of(form)
    if status is None or reason is None:
        return visit.text("admin_merchants.reason_missing")
    if status != "active" and not is_confirmed(form):
        return visit.text("admin_merchants.confirm_missing")
    await administration.set_status(
        visit.console.ctx.db, visit.console.ctx.clock, merchant.id, status, acting.actor, reason
    )
    return None


async def _set_name(visit: Visit, acting: StaffMember, merchant: Merchant, form: dict[str, str]) -> Any:
    name = merchant_name(form.get("name", ""))
    if name is None:
        return visit.text("admin_merchants.incomplete")
    await administration.set_name(visit.console.ctx.db, visit.console.ctx.clock, merchant.id, name, acting.actor)
    return None


async def _set_time_zone(visit: Visit, acting: StaffMember, merchant: Merchant, form: dict[str, str]) -> Any:
    typed = form.get("time_zone", "").strip()
    try:
        zone = str(parsers.time_zone(typed)) if typed else None
    except ValueError:
        return visit.text("admin_merchants.zone_unknown")
    await administration.set_time_zone(visit.console.ctx.db, visit.console.ctx.clock, merchant.id, zone, acting.actor)
    return None


async def _set_limits(visit: Visit, acting: StaffMember, merchant: Merchant, form: dict[str, str]) -> Any:
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
        return visit.text("admin_merchants.limits_wrong")
    if reason is None:
        return visit.text("admin_merchants.reason_needed")
    await set_limits(visit.console.ctx.db, visit.console.ctx.clock, merchant.id, wanted, acting.actor, reason)
    return None


async def _withdraw(visit: Visit, acting: StaffMember, merchant: Merchant, form: dict[str, str]) -> Any:
    """Nothing happens if the invitation was answered meanwhile."""
    number = row_number(form.get("invitation"))
    if number is None:
        return visit.text("admin_merchants.incomplete")
    ctx = visit.console.ctx
    async with ctx.db.transaction() as tx:
        await withdraw(tx, merchant.id, number, acting.actor, ctx.clock.now())
    return None


async def _page(
    visit: Visit,
    acting: StaffMember,
    merchant: Merchant,
    status: int = 200,
    fault: Any = None,
    form: dict[str, str] | None = None,
) -> Response:
    """The read is in the audit log: the page names the people of the team."""
    ctx = visit.console.ctx
    await record_read(visit, acting, "merchant.read", "merchant", merchant.id, merchant.id)
    now = ctx.clock.now()
    day = merchant_limits.day_of(merchant, now, ctx.settings.time_zone)
    keys = [key for key in await api_keys.list_of(ctx.db, merchant.id) if key.revoked_at is None]
    usable = [key for key in keys if key.expires_at is None or key.expires_at > now]
    team = await users.team(ctx.db, merchant.id)
    view = {
        "team": team,
        "may_invite": acting.may("merchants.change") and not has_owner(team),
        "invited": await mail_links.open_offers(ctx.db, merchant.id, now),
        "api_keys": [(env, sum(key.env == env for key in usable)) for env in ENVS],
        "endpoints": [await merchants.endpoint(ctx.db, merchant.id, env) for env in ENVS],
        "wallets": await wallets.wallets_of(ctx.db, merchant.id) if acting.may("wallets.view") else None,
        "bounds": (MIN_DEBIT, MAX_DEBIT),
        "common_rate": ctx.settings.rate_limit,
        "today": await merchant_limits.total_of(ctx.db, merchant.id, day) if merchant.daily_limit is not None else None,
        "zone": merchant.time_zone or str(ctx.settings.time_zone),
        "statuses": MERCHANT_STATUSES,
        "may_change": acting.may("merchants.change"),
        "done": visit.request.query_params.get("done"),
        "typed": form or _present(merchant),
    }
    return show_file(visit, acting, merchant, "file", status, fault=fault, **view)


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
