"""The test clock of a merchant on a page, as `guichet clock` moves it: for the merchant's developers and the staff."""

from typing import Any, Final

from guichet.clock import DAY, HOUR, MINUTE, SECOND, later
from guichet.console.page_request import ConsoleRequest
from guichet.domain.audit_log import Actor, ActRefused
from guichet.domain.ids import MerchantId
from guichet.sandbox import clock as sandbox_clock

_UNITS: Final = ("m", "h", "d")


class ClockFormWrong(ValueError):
    """Not a duration that a clock can be advanced by."""


class ClockMoved(Exception):
    """The clock was moved since the form was shown: it was sent twice, or a colleague was faster."""


async def clock_view(request: ConsoleRequest, merchant_id: MerchantId) -> dict[str, Any]:
    ctx = request.ctx
    ahead = await sandbox_clock.advanced_by(ctx.db, merchant_id) * SECOND
    units = {"days": ahead // DAY, "hours": ahead % DAY // HOUR, "minutes": ahead % HOUR // MINUTE}
    return {
        "ahead": request.text("clock.duration", **units) if ahead else None,
        "time": request.date_time(later(ctx.clock.now(), ahead)),
        "seen": await sandbox_clock.newest_move(ctx.db, merchant_id),
        "units": [(unit, request.text(f"clock.unit.{unit}")) for unit in _UNITS],
    }


async def change_clock(request: ConsoleRequest, merchant_id: MerchantId, form: dict[str, str], actor: Actor) -> None:
    """Advances the clock, once for each form, or counts from zero again. Raises ClockFormWrong, ClockMoved."""
    ctx = request.ctx
    if form.get("act") == "clock_reset":
        await sandbox_clock.reset(ctx.db, ctx.clock, merchant_id, actor)
        return
    unit, seen = form.get("unit", ""), form.get("seen", "")
    seconds = sandbox_clock.read_duration(form.get("number", "").strip() + unit) if unit in _UNITS else None
    if seconds is None or not (seen.isascii() and seen.isdigit() and len(seen) < 19):
        raise ClockFormWrong
    try:
        await sandbox_clock.advance(ctx, merchant_id, seconds, actor, int(seen))
    except sandbox_clock.MovedMeanwhile:
        raise ClockMoved from None
    except ActRefused:
        raise ClockFormWrong from None
