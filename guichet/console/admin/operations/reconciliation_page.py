"""What the daily comparisons with the providers found in the last month."""

from typing import Final

from starlette.responses import Response

from guichet.accounts.rights import StaffMember
from guichet.clock import iso
from guichet.console.sections import StaffPage
from guichet.console.visit import Visit
from guichet.domain.errors import NotFound
from guichet.ledger.reconciliation_runs import recent_runs

#: Differences of one run that its page shows; `guichet reconcile --runs --json` has all that were kept.
_SHOWN: Final = 100


async def show_list(visit: Visit, acting: StaffMember) -> Response:
    ctx = visit.console.ctx
    runs = [(iso(each.day)[:10], each) for each in await recent_runs(ctx.db, ctx.clock.now())]
    return visit.show("admin/operations/reconciliation.html", runs=runs)


async def show(visit: Visit, acting: StaffMember) -> Response:
    """The differences of one account and day."""
    ctx, path = visit.console.ctx, visit.request.path_params
    for each in await recent_runs(ctx.db, ctx.clock.now()):
        if (iso(each.day)[:10], each.provider_account) == (path["day"], path["account"]):
            details = each.details[:_SHOWN]
            return visit.show("admin/operations/run.html", run=each, day=path["day"], details=details)
    raise NotFound


PAGES: Final = (
    StaffPage("/reconciliation", "reconciliation.view", show_list, menu="reconciliation"),
    StaffPage("/reconciliation/{day}/{account}", "reconciliation.view", show),
)
