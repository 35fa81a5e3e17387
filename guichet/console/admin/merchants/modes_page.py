"""The payment modes of one merchant, and what they cost its customers."""

from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from starlette.responses import Response

from guichet.accounts.rights import StaffMember
from guichet.administration.errors import ClosedForEverybody, UnknownOperator
from guichet.administration.payment_modes import change_mode, current_catalogue, find_mode
from guichet.console.admin.fields import reason_of
from guichet.console.admin.merchants.of_merchant import address, merchant_of, show_file
from guichet.console.forms import is_confirmed
from guichet.console.sections import StaffPage
from guichet.console.visit import Visit
from guichet.domain.catalogue import RATE_PLACES, ModeOverride, PaymentMode
from guichet.domain.merchants import Merchant
from guichet.domain.money import Hundredths, parse_decimal, plain
from guichet.schemas.json_codec import percent

_FIXED_PLACES: Final = 2
_HUNDRED_PERCENT: Final = 100 * 10**RATE_PLACES


class _WrongFee(ValueError):
    """Not a number, or one that cannot be kept exactly."""


async def show(visit: Visit, acting: StaffMember) -> Response:
    return await _page(visit, acting, await merchant_of(visit))


async def change(visit: Visit, acting: StaffMember) -> Response:
    """Opens or closes a mode for this merchant, or sets its fee. A field that is left empty stays as it is.

    The first form is answered with the mode before and after; it is changed when that was ticked, if the mode is still
    the one that was shown.
    """
    form = await visit.form()
    ctx = visit.console.ctx
    acting.require("merchants.change", ctx.clock.now())
    merchant = await merchant_of(visit)
    reason = reason_of(form)
    if reason is None:
        return await _page(visit, acting, merchant, 422, visit.text("operations.reason_missing"), form)
    try:
        override = _override(merchant, form)
        mode = find_mode(await current_catalogue(ctx, merchant.id), override.operator)
        if not is_confirmed(form) or form.get("before") != _facts(mode):
            return _confirmation(visit, acting, merchant, mode, override, form)
        await change_mode(ctx, override, acting.actor, reason)
    except _WrongFee:
        fault = visit.text("admin_merchants.fee_wrong")
    except ClosedForEverybody as closed:
        fault = visit.text("admin_merchants.closed_for_everybody", operator=closed)
    except UnknownOperator:
        fault = visit.text("admin_merchants.incomplete")
    else:
        return visit.redirect(address(visit, merchant, "/modes", done="saved"))
    return await _page(visit, acting, merchant, 422, fault, form)


def _confirmation(
    visit: Visit,
    acting: StaffMember,
    merchant: Merchant,
    mode: PaymentMode,
    override: ModeOverride,
    form: dict[str, str],
) -> Response:
    """The change as it would be. A second form without the tick, or about a mode that changed since, is asked again."""
    after = replace(
        mode,
        active=mode.active if override.active is None else override.active,
        fee_percent=mode.fee_percent if override.fee_percent is None else override.fee_percent,
        fee_fixed=mode.fee_fixed if override.fee_fixed is None else override.fee_fixed,
    )
    again = "before" in form
    fault = visit.text("admin_modes.confirm_missing") if again else None
    view = {
        "mode": mode,
        "change": [(each.active, _fee(visit, each)) for each in (mode, after)],
        "kept": {name: form.get(name, "") for name in ("operator", "state", "percent", "fixed", "reason")},
        "before": _facts(mode),
    }
    return show_file(visit, acting, merchant, "modes_confirmation", 422 if again else 200, fault=fault, **view)


def _facts(mode: PaymentMode) -> str:
    """What a person was shown of a mode, to compare with the mode when the change is made."""
    return f"{mode.active}/{mode.fee_percent}/{mode.fee_fixed}"


def _override(merchant: Merchant, form: dict[str, str]) -> ModeOverride:
    """Raises _WrongFee when nothing is given, or a fee is not what can be kept."""
    active = {"open": True, "closed": False}.get(form.get("state", ""))
    rate = _number(form.get("percent", ""), RATE_PLACES)
    fixed = _number(form.get("fixed", ""), _FIXED_PLACES)
    if (active is None and rate is None and fixed is None) or (rate or 0) > _HUNDRED_PERCENT:
        raise _WrongFee
    operator = form.get("operator", "")
    return ModeOverride(merchant.id, operator, active, rate, None if fixed is None else Hundredths(fixed))


def _number(typed: str, places: int) -> int | None:
    """What was typed as an integer of `places` decimals, never rounded; None for nothing. Raises _WrongFee."""
    text = "".join(typed.split()).replace(",", ".")
    if not text:
        return None
    number = parse_decimal(text, places)
    if number is None or Decimal(text).scaleb(places) != number:
        raise _WrongFee
    return number


async def _page(
    visit: Visit,
    acting: StaffMember,
    merchant: Merchant,
    status: int = 200,
    fault: Any = None,
    form: dict[str, str] | None = None,
) -> Response:
    ctx = visit.console.ctx
    everybody = await current_catalogue(ctx, None)
    modes = (await current_catalogue(ctx, merchant.id)).modes
    view = {
        "modes": [(mode, _fee(visit, mode), mode != everybody.by_operator(mode.operator)) for mode in modes],
        "may_change": acting.may("merchants.change"),
        "done": visit.request.query_params.get("done") == "saved",
        "typed": form or {},
    }
    return show_file(visit, acting, merchant, "modes", status, fault=fault, **view)


def _fee(visit: Visit, mode: PaymentMode) -> str:
    """`1,75 % + 100` for a French reader."""
    text = f"{bytes(percent(mode.fee_percent)).decode()}\u00a0%"
    if mode.fee_fixed:
        text += f" + {plain(mode.fee_fixed)}"
    return text.replace(".", ",") if visit.language == "fr" else text


PAGES: Final = (StaffPage("/merchants/{merchant:row}/modes", "merchants.view", show, change),)
