"""Payment modes for everybody, with how well their operators worked in the last hour, and those of one merchant; the
form that opens or closes a mode, or sets its fee. A field that is left empty stays as it is."""

from typing import Final, Literal

from msgspec import structs
from starlette.responses import Response

from guichet.availability import availabilities, recent_attempts
from guichet.back_office.errors import ClosedForEverybody, UnknownOperator
from guichet.back_office.merchants import change_mode, current_catalogue, find_mode
from guichet.clock import HOUR, Instant, earlier
from guichet.console.admin.merchants.of_merchant import address, merchant_of, show_file
from guichet.console.forms import Confirmed, Reason
from guichet.console.page_request import ConsoleRequest, FormFault, StaffRequest
from guichet.domain.availability import UP
from guichet.domain.catalogue import RATE_PLACES, ModeOverride, PaymentMode, percent
from guichet.domain.ids import MerchantId
from guichet.domain.messages import Message
from guichet.domain.money import Hundredths, parse_typed, plain
from guichet.pages.fields import Fields, Lenient
from guichet.pages.formatting import country_name
from guichet.pages.views import View

_FIXED_PLACES: Final = 2
_HUNDRED_PERCENT: Final = 100 * 10**RATE_PLACES


class ModeForm(Fields):
    """`before`: the mode as it was shown when the change was to be confirmed."""

    operator: str = ""
    state: Lenient[Literal["open", "closed"]] = None
    percent: str = ""
    fixed: str = ""
    reason: Reason = None
    before: str | None = None
    confirm: Confirmed = False


class ConfirmationView(View, frozen=True):
    """`change`: whether the mode is open and what it costs, now and afterwards; `hidden_fields`: of its form."""

    mode: PaymentMode
    change: list[tuple[bool, str]]
    hidden_fields: dict[str, str]
    before: str


async def _change_by_form(
    request: StaffRequest, merchant_id: MerchantId | None, form: ModeForm
) -> ConfirmationView | None:
    """Changes the mode, if the form says yes to what it was before and after and it is still that; otherwise what is to
    be confirmed. Raises FormFault."""
    if form.reason is None:
        raise FormFault(request.text("operations.reason_missing"))
    try:
        override = _override(request, merchant_id, form)
        mode = find_mode(await current_catalogue(request.ctx, merchant_id), override.operator)
        if not form.confirm or form.before != _facts(mode):
            # A second form without the tick, or about a mode that changed since, is asked again.
            if form.before is not None:
                request.fault = FormFault(request.text("admin_modes.confirm_missing"))
            return _confirmation(request, mode, override)
        await change_mode(request.ctx, override, request.actor, form.reason)
    except ClosedForEverybody as closed:
        raise FormFault(request.text("admin_merchants.closed_for_everybody", operator=closed)) from None
    except UnknownOperator:
        raise FormFault(request.text("operations.incomplete")) from None
    return None


def _confirmation(request: StaffRequest, mode: PaymentMode, override: ModeOverride) -> ConfirmationView:
    after = structs.replace(
        mode,
        active=mode.active if override.active is None else override.active,
        fee_percent=mode.fee_percent if override.fee_percent is None else override.fee_percent,
        fee_fixed=mode.fee_fixed if override.fee_fixed is None else override.fee_fixed,
    )
    return ConfirmationView(
        mode=mode,
        change=[(state.active, _fee_text(request, state)) for state in (mode, after)],
        hidden_fields={
            name: request.form_values.get(name, "") for name in ("operator", "state", "percent", "fixed", "reason")
        },
        before=_facts(mode),
    )


def _facts(mode: PaymentMode) -> str:
    """What a person was shown of a mode, to compare with the mode when the change is made."""
    return f"{mode.active}/{mode.fee_percent}/{mode.fee_fixed}"


def _override(request: StaffRequest, merchant_id: MerchantId | None, form: ModeForm) -> ModeOverride:
    """Raises FormFault when nothing is given, or a fee is not what can be kept."""
    active = None if form.state is None else form.state == "open"
    rate, fixed = _number(request, form.percent, RATE_PLACES), _number(request, form.fixed, _FIXED_PLACES)
    if (active is None and rate is None and fixed is None) or (rate or 0) > _HUNDRED_PERCENT:
        raise FormFault(request.text("admin_merchants.fee_wrong"))
    return ModeOverride(merchant_id, form.operator, active, rate, None if fixed is None else Hundredths(fixed))


def _number(request: StaffRequest, text: str, places: int) -> int | None:
    """What was typed as an integer of `places` decimals, never rounded; None for nothing."""
    if not text.strip():
        return None
    number = parse_typed(text, places)
    if number is None:
        raise FormFault(request.text("admin_merchants.fee_wrong"))
    return number


def _fee_text(request: ConsoleRequest, mode: PaymentMode) -> str:
    """`1,75 % + 100` for a French reader."""
    text = f"{bytes(percent(mode.fee_percent)).decode()}\u00a0%"
    if mode.fee_fixed:
        text += f" + {plain(mode.fee_fixed)}"
    return text.replace(".", ",") if request.language == "fr" else text


async def show_of_merchant(request: StaffRequest) -> Response:
    merchant, ctx = await merchant_of(request), request.ctx
    everybody = await current_catalogue(ctx, None)
    modes = (await current_catalogue(ctx, merchant.id)).modes
    # Each mode with its fee, and whether it is not the one of everybody.
    rows = [(mode, _fee_text(request, mode), mode != everybody.by_operator(mode.operator)) for mode in modes]
    return show_file(request, merchant, "modes", rows=rows, operators=[mode.operator for mode in modes])


async def change_of_merchant(request: StaffRequest) -> Response:
    """Opens or closes a mode for this merchant, or sets its fee, after a confirmation."""
    form = await request.form(ModeForm)
    request.require("merchants.change")
    merchant = await merchant_of(request)
    if to_confirm := await _change_by_form(request, merchant.id, form):
        return show_file(request, merchant, "modes_confirmation", to_confirm)
    return request.done(address(request, merchant, "/modes"), "mode_changed")


class ModeRow(View, frozen=True):
    """`percent` of the attempts of the last hour that did not fail technically, None without attempts."""

    mode: PaymentMode
    fee: str
    state: str
    since: Instant | None
    why: Message | None
    attempts: int
    percent: int | None


async def show(request: StaffRequest) -> Response:
    """`?operator=` leads from a mode to the form about it."""
    rows = await _rows(request)
    countries: dict[str, list[ModeRow]] = {}
    for row in rows:
        name = row.mode.country or request.text("operations.no_country")
        countries.setdefault(country_name(name, row.mode.country_code, request.language), []).append(row)
    operators = [row.mode.operator for row in rows]
    return request.page("admin/operations/modes.html", countries=countries, operators=operators)


async def change(request: StaffRequest) -> Response:
    """Opens or closes a mode for everybody, or sets its general fee, after a confirmation."""
    form = await request.form(ModeForm)
    request.require("modes.change")
    if to_confirm := await _change_by_form(request, None, form):
        return request.page("admin/operations/modes_confirmation.html", to_confirm)
    return request.done(request.admin_url("/modes"), "mode_changed")


async def _rows(request: StaffRequest) -> list[ModeRow]:
    """One for each mode. Reads a row for each operator and minute."""
    ctx, now = request.ctx, request.now()
    availability_of = {availability.operator: availability for availability in await availabilities(ctx.db)}
    attempts = await recent_attempts(ctx.db, now)
    rows = []
    for mode in (await current_catalogue(ctx, None)).modes:
        last_hour = [counts for counts in attempts.get(mode.operator, ()) if counts.minute >= earlier(now, HOUR)]
        attempted, failed = sum(counts.attempts for counts in last_hour), sum(counts.failures for counts in last_hour)
        availability = availability_of.get(mode.operator)
        rows.append(
            ModeRow(
                mode=mode,
                fee=_fee_text(request, mode),
                state=availability.state if availability else UP,
                since=availability.since if availability else None,
                why=availability.reason if availability else None,
                attempts=attempted,
                percent=None if not attempted else 100 * (attempted - failed) // attempted,
            )
        )
    return rows
