"""The test clock of a merchant on a page, as `guichet clock` moves it: for the merchant's developers and the staff."""

from typing import Literal, get_args

from guichet.clock import DAY, HOUR, MINUTE, SECOND, later
from guichet.console.page_request import ConsoleRequest, FormFault
from guichet.domain.audit_log import ActRefused
from guichet.domain.ids import MerchantId
from guichet.pages.fields import Fields, Lenient, RowId
from guichet.pages.views import View
from guichet.sandbox import clock as sandbox_clock

_Unit = Literal["m", "h", "d"]


class ClockForm(Fields):
    """`seen`: the newest move of the clock when the form was shown, so that one form moves it once."""

    act: str = ""
    number: str = ""
    unit: Lenient[_Unit] = None
    seen: Lenient[RowId] = None


class ClockView(View, frozen=True):
    """`ahead`: how far, None for the time of the service."""

    ahead: str | None
    time: str
    seen: int
    units: list[tuple[str, str]]


async def clock_view(request: ConsoleRequest, merchant_id: MerchantId) -> ClockView:
    ahead = await sandbox_clock.advanced_by(request.db, merchant_id) * SECOND
    units = {"days": ahead // DAY, "hours": ahead % DAY // HOUR, "minutes": ahead % HOUR // MINUTE}
    return ClockView(
        ahead=request.text("clock.duration", **units) if ahead else None,
        time=request.date_time(later(request.now(), ahead)),
        seen=await sandbox_clock.newest_move(request.db, merchant_id),
        units=[(unit, request.text(f"clock.unit.{unit}")) for unit in get_args(_Unit)],
    )


async def change_clock(request: ConsoleRequest, merchant_id: MerchantId, form: ClockForm) -> None:
    """Advances the clock, once for each form, or counts from zero again. Raises FormFault."""
    ctx = request.ctx
    if form.act == "clock_reset":
        await sandbox_clock.reset(ctx.db, ctx.clock, merchant_id, request.actor)
        return
    seconds = sandbox_clock.read_duration(form.number.strip() + form.unit) if form.unit else None
    if seconds is None or form.seen is None:
        raise FormFault(request.text("clock.wrong"))
    try:
        await sandbox_clock.advance(ctx, merchant_id, seconds, request.actor, form.seen)
    except sandbox_clock.MovedMeanwhile:
        raise FormFault(request.text("clock.moved"), 409) from None
    except ActRefused:
        raise FormFault(request.text("clock.wrong")) from None
