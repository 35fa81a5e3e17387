"""Money acts that wait for a second person: the list, and one request to approve or to refuse."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts import approvals
from guichet.audit_log import approval_requests
from guichet.console.admin.operations.case import Case, case_of
from guichet.console.admin.reads import record_read
from guichet.console.facts import fact_text
from guichet.console.forms import reason_of
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.domain.approvals import RIGHTS, ApprovalRequest
from guichet.domain.audit_log import ActRefused, Facts
from guichet.domain.errors import NotFound
from guichet.domain.ids import ApprovalId

_DECIDED_SHOWN: Final = 50


async def show_list(request: StaffRequest) -> Response:
    """What waits, oldest first; then the latest requests, whatever became of them."""
    ctx = request.ctx
    now = ctx.clock.now()
    waiting = await approval_requests.waiting(ctx.db, now)
    latest = await approval_requests.latest(ctx.db, _DECIDED_SHOWN)
    decided = [each for each in latest if each.status_at(now) != "pending"]
    shown: Facts = {"waiting": [each.id for each in waiting], "decided": [each.id for each in decided]}
    await record_read(request, "approvals.listed", "approval", "list", shown=shown)
    return request.show("admin/operations/approvals.html", waiting=waiting, decided=decided, now=now)


async def show(request: StaffRequest) -> Response:
    return await _page(request, await _approval(request))


async def decide(request: StaffRequest) -> Response:
    """Approves, which does the act, or refuses."""
    form = await request.fields()
    approval = await _approval(request)
    request.require(RIGHTS[approval.act])
    reason = reason_of(form)
    decision = {"approve": approvals.approve, "refuse": approvals.refuse}.get(form.get("act", ""))
    if reason is None or decision is None:
        return await _page(request, approval, 422, request.text("operations.reason_missing"), form)
    try:
        await decision(request.ctx, approval.id, request.member, reason)
    except ActRefused as refusal:
        return await _page(request, await _approval(request), 409, typed=form, refusal=refusal)
    return request.redirect(request.at_admin(f"/approvals/{approval.id}"))


async def _approval(request: StaffRequest) -> ApprovalRequest:
    number: int = request.path["request"]
    found = await approval_requests.get(request.db, ApprovalId(number))
    if found is None:
        raise NotFound
    return found


async def _page(
    request: StaffRequest,
    approval: ApprovalRequest,
    status: int = 200,
    fault: Any = None,
    typed: dict[str, str] | None = None,
    refusal: ActRefused | None = None,
) -> Response:
    ctx = request.ctx
    case: Case | None = None
    if not approval.act.startswith("wallet."):
        case = await case_of(ctx, approval.subject)
    if case is not None:
        await record_read(request, "payment.viewed", "payment", case.payment.reference, approval.merchant_id)
    view = {
        "request": approval,
        "arguments": [
            (name, fact_text(request, "approval", name, value))
            for name, value in sorted(approval.wanted.arguments.items())
        ],
        "request_status": approval.status_at(ctx.clock.now()),
        "own": approvals.is_same_person(approval, request.person),
        "too_new": approvals.is_too_new(request.person, ctx.clock.now()),
        "approves_from": approvals.may_approve_from(request.person),
        "may": request.may(RIGHTS[approval.act]),
        "case": case,
        "typed": typed or {},
    }
    return request.show("admin/operations/approval.html", status, fault=fault, refusal=refusal, **view)


PAGES: Final = (
    StaffPage("/approvals", "incidents.decide", show_list, menu="approvals"),
    StaffPage("/approvals/{request:row}", "incidents.decide", show, decide),
)
