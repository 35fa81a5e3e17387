"""What the daily comparisons with the providers found in the last month."""

from collections.abc import Callable
from datetime import date
from typing import Final

from starlette.responses import Response

from guichet.clock import Instant, iso
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.domain.errors import NotFound
from guichet.ledger.reconciliation_runs import recent_runs

#: Differences of one run that its page shows; `guichet reconcile --runs --json` has all that were kept.
_SHOWN: Final = 100


async def show_list(request: StaffRequest) -> Response:
    ctx = request.ctx
    runs = [(iso(each.day)[:10], each) for each in await recent_runs(ctx.db, ctx.clock.now())]
    return request.show("admin/operations/reconciliation.html", runs=runs, day=_day_text(request))


async def show(request: StaffRequest) -> Response:
    """The differences of one account and day."""
    ctx, path = request.ctx, request.path
    for each in await recent_runs(ctx.db, ctx.clock.now()):
        if (iso(each.day)[:10], each.provider_account) == (path["day"], path["account"]):
            details = each.details[:_SHOWN]
            return request.show("admin/operations/run.html", run=each, day=_day_text(request), details=details)
    raise NotFound


def _day_text(request: StaffRequest) -> Callable[[Instant], str]:
    """The day of a run is one of UTC, in which the providers' statements are read (docs/admin-guide.md)."""
    return lambda day: request.day(date.fromisoformat(iso(day)[:10]))


PAGES: Final = (
    StaffPage("/reconciliation", "reconciliation.view", show_list, menu="reconciliation"),
    StaffPage("/reconciliation/{day}/{account}", "reconciliation.view", show),
)
