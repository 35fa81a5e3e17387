"""Money acts that wait for a second person: the list, and one request to approve or to refuse."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts import approvals
from guichet.accounts.rights import StaffMember
from guichet.audit_log import approval_requests
from guichet.console.admin.fields import reason_of
from guichet.console.admin.operations.case import Case, case_of
from guichet.console.admin.reads import record_read
from guichet.console.facts import fact_text
from guichet.console.sections import StaffPage
from guichet.console.visit import Visit
from guichet.domain.approvals import RIGHTS, ApprovalRequest
from guichet.domain.audit_log import ActRefused, Facts
from guichet.domain.errors import NotFound
from guichet.domain.ids import ApprovalId

_DECIDED_SHOWN: Final = 50


async def show_list(visit: Visit, acting: StaffMember) -> Response:
    """What waits, oldest first; then the latest requests, whatever became of them."""
    ctx = visit.console.ctx
    now = ctx.clock.now()
    waiting = await approval_requests.waiting(ctx.db, now)
    latest = await approval_requests.latest(ctx.db, _DECIDED_SHOWN)
    decided = [each for each in latest if each.status_at(now) != "pending"]
    shown: Facts = {"waiting": [each.id for each in waiting], "decided": [each.id for each in decided]}
    await record_read(visit, acting, "approvals.listed", "approval", "list", shown=shown)
    return visit.show("admin/operations/approvals.html", waiting=waiting, decided=decided, now=now)


async def show(visit: Visit, acting: StaffMember) -> Response:
    return await _page(visit, acting, await _request(visit))


async def decide(visit: Visit, acting: StaffMember) -> Response:
    """Approves, which does the act, or refuses."""
    form = await visit.form()
    ctx = visit.console.ctx
    request = await _request(visit)
    acting.require(RIGHTS[request.act], ctx.clock.now())
    reason = reason_of(form)
    decision = {"approve": approvals.approve, "refuse": approvals.refuse}.get(form.get("act", ""))
    if reason is None or decision is None:
        return await _page(visit, acting, request, 422, visit.text("operations.reason_missing"), form)
    try:
        await decision(ctx, request.id, acting, reason)
    except ActRefused as refusal:
        return await _page(visit, acting, await _request(visit), 409, typed=form, refusal=refusal)
    return visit.redirect(visit.at_admin(f"/approvals/{request.id}"))


async def _request(visit: Visit) -> ApprovalRequest:
    number: int = visit.request.path_params["request"]
    found = await approval_requests.get(visit.console.ctx.db, ApprovalId(number))
    if found is None:
        raise NotFound
    return found


async def _page(
    visit: Visit,
    acting: StaffMember,
    request: ApprovalRequest,
    status: int = 200,
    fault: Any = None,
    typed: dict[str, str] | None = None,
    refusal: ActRefused | None = None,
) -> Response:
    ctx = visit.console.ctx
    case: Case | None = None
    if not request.act.startswith("wallet."):
        case = await case_of(ctx, request.subject)
    if case is not None:
        await record_read(visit, acting, "payment.viewed", "payment", case.payment.reference, request.merchant_id)
    view = {
        "request": request,
        "arguments": [
            (name, fact_text(visit, "approval", name, value))
            for name, value in sorted(request.wanted.arguments.items())
        ],
        "request_status": request.status_at(ctx.clock.now()),
        "own": approvals.is_same_person(request, acting.user),
        "too_new": approvals.is_too_new(acting.user, ctx.clock.now()),
        "approves_from": approvals.may_approve_from(acting.user),
        "may": acting.may(RIGHTS[request.act]),
        "case": case,
        "typed": typed or {},
    }
    return visit.show("admin/operations/approval.html", status, fault=fault, refusal=refusal, **view)


PAGES: Final = (
    StaffPage("/approvals", "incidents.decide", show_list, menu="approvals"),
    StaffPage("/approvals/{request:row}", "incidents.decide", show, decide),
)
