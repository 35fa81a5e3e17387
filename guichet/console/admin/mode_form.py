"""The form that changes a payment mode, for everybody or for one merchant: it opens or closes the mode, or sets its
fee. A field that is left empty stays as it is."""

from dataclasses import replace
from typing import Any, Final

from guichet.back_office.errors import ClosedForEverybody, UnknownOperator
from guichet.back_office.payment_modes import change_mode, current_catalogue, find_mode
from guichet.console.admin.fields import reason_of
from guichet.console.forms import is_confirmed
from guichet.console.page_request import StaffRequest
from guichet.domain.catalogue import RATE_PLACES, ModeOverride, PaymentMode
from guichet.domain.ids import MerchantId
from guichet.domain.money import Hundredths, parse_typed, plain
from guichet.schemas.json_codec import percent

_FIXED_PLACES: Final = 2
_HUNDRED_PERCENT: Final = 100 * 10**RATE_PLACES


class ModeFormFault(Exception):
    """`text`: what is wrong with the form, for the person who sent it."""

    def __init__(self, text: Any) -> None:
        super().__init__(str(text))
        self.text: Any = text


class _WrongFee(ValueError):
    """Not a number, or one that cannot be kept exactly."""


async def change_by_form(
    request: StaffRequest, merchant_id: MerchantId | None, form: dict[str, str]
) -> dict[str, Any] | None:
    """Changes the mode if the change was confirmed, and returns None; otherwise what the page shows that asks for the
    confirmation (`_modes.html`). The caller has checked the right. Raises ModeFormFault.

    The first form is answered with the mode before and after; it is changed when that was ticked, if the mode is still
    the one that was shown.
    """
    ctx, reason = request.ctx, reason_of(form)
    if reason is None:
        raise ModeFormFault(request.text("operations.reason_missing"))
    try:
        override = _override(merchant_id, form)
        mode = find_mode(await current_catalogue(ctx, merchant_id), override.operator)
        if not is_confirmed(form) or form.get("before") != _facts(mode):
            return _confirmation(request, mode, override, form)
        await change_mode(ctx, override, request.actor, reason)
    except _WrongFee:
        raise ModeFormFault(request.text("admin_merchants.fee_wrong")) from None
    except ClosedForEverybody as closed:
        raise ModeFormFault(request.text("admin_merchants.closed_for_everybody", operator=closed)) from None
    except UnknownOperator:
        raise ModeFormFault(request.text("operations.incomplete")) from None
    return None


def fee_text(request: StaffRequest, mode: PaymentMode) -> str:
    """`1,75 % + 100` for a French reader."""
    text = f"{bytes(percent(mode.fee_percent)).decode()}\u00a0%"
    if mode.fee_fixed:
        text += f" + {plain(mode.fee_fixed)}"
    return text.replace(".", ",") if request.language == "fr" else text


def _confirmation(
    request: StaffRequest, mode: PaymentMode, override: ModeOverride, form: dict[str, str]
) -> dict[str, Any]:
    """The change as it would be. A second form without the tick, or about a mode that changed since, is asked again."""
    after = replace(
        mode,
        active=mode.active if override.active is None else override.active,
        fee_percent=mode.fee_percent if override.fee_percent is None else override.fee_percent,
        fee_fixed=mode.fee_fixed if override.fee_fixed is None else override.fee_fixed,
    )
    again = "before" in form
    return {
        "status": 422 if again else 200,
        "fault": request.text("admin_modes.confirm_missing") if again else None,
        "mode": mode,
        "change": [(each.active, fee_text(request, each)) for each in (mode, after)],
        "kept": {name: form.get(name, "") for name in ("operator", "state", "percent", "fixed", "reason")},
        "before": _facts(mode),
    }


def _facts(mode: PaymentMode) -> str:
    """What a person was shown of a mode, to compare with the mode when the change is made."""
    return f"{mode.active}/{mode.fee_percent}/{mode.fee_fixed}"


def _override(merchant_id: MerchantId | None, form: dict[str, str]) -> ModeOverride:
    """Raises _WrongFee when nothing is given, or a fee is not what can be kept."""
    active = {"open": True, "closed": False}.get(form.get("state", ""))
    rate = _number(form.get("percent", ""), RATE_PLACES)
    fixed = _number(form.get("fixed", ""), _FIXED_PLACES)
    if (active is None and rate is None and fixed is None) or (rate or 0) > _HUNDRED_PERCENT:
        raise _WrongFee
    operator = form.get("operator", "")
    return ModeOverride(merchant_id, operator, active, rate, None if fixed is None else Hundredths(fixed))


def _number(typed: str, places: int) -> int | None:
    """What was typed as an integer of `places` decimals, never rounded; None for nothing. Raises _WrongFee."""
    if not typed.strip():
        return None
    number = parse_typed(typed, places)
    if number is None:
        raise _WrongFee
    return number
