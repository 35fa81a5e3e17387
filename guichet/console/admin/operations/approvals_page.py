"""Money acts that wait for a second person: the list, and one request to approve or to refuse."""

from typing import Final

from starlette.responses import Response

from guichet.accounts import approvals
from guichet.accounts.access_acts import subject_text
from guichet.audit_log import approval_requests
from guichet.clock import Instant
from guichet.console.admin.operations.case import Case, case_of
from guichet.console.admin.reads import record_read
from guichet.console.facts import fact_text
from guichet.console.forms import Reason
from guichet.console.page_request import FormFault, StaffRequest
from guichet.console.sections import StaffPage
from guichet.domain.approvals import ACCESS_ACTS, RIGHTS, ApprovalRequest
from guichet.domain.audit_log import ActRefused, Facts
from guichet.domain.errors import NotFound
from guichet.domain.ids import ApprovalId
from guichet.pages.fields import Fields
from guichet.pages.views import View

_DECIDED_SHOWN: Final = 50


class ApprovalsView(View, frozen=True):
    """`subjects`: what each is about, by its id."""

    waiting: list[ApprovalRequest]
    decided: list[ApprovalRequest]
    subjects: dict[ApprovalId, str]
    now: Instant


async def show_list(request: StaffRequest) -> Response:
    """What waits, oldest first; then the latest requests, whatever became of them."""
    now = request.now()
    waiting = await approval_requests.waiting(request.db, now)
    latest = await approval_requests.latest(request.db, _DECIDED_SHOWN)
    decided = [approval for approval in latest if approval.status_at(now) != "pending"]
    shown: Facts = {
        "waiting": [approval.id for approval in waiting],
        "decided": [approval.id for approval in decided],
    }
    await record_read(request, "approvals.listed", "approval", "list", shown=shown)
    subjects = {each.id: await subject_text(request.db, each.subject) for each in (*waiting, *decided)}
    return request.page("admin/operations/approvals.html", ApprovalsView(waiting, decided, subjects, now))


class DecisionForm(Fields):
    act: str = ""
    reason: Reason = None


class ApprovalView(View, frozen=True):
    """`own`: the reader asked for it; `too_new`: they may approve nothing of the kind before `approves_from`; `case`:
    what is decided about, None for a wallet, our own money or a person. `unopposed`: nobody objected to it."""

    request: ApprovalRequest
    subject: str
    arguments: list[tuple[str, str]]
    request_status: str
    own: bool
    too_new: bool
    approves_from: Instant
    may: bool
    case: Case | None
    about_access: bool
    unopposed: bool


async def show(request: StaffRequest, fault: FormFault | None = None) -> Response:
    approval, now = await _approval(request), request.now()
    caseless = approval.act in ACCESS_ACTS or approval.act in ("wallet.reopen", "treasury.record")
    case = None if caseless else await case_of(request.ctx, approval.subject)
    approves_from = await approvals.may_approve_from(request.db, approval.act, request.person, now)
    in_team = approval.act == "team.give_role"
    if case is not None:
        await record_read(request, "payment.viewed", "payment", case.payment.reference, approval.merchant_id)
    view = ApprovalView(
        request=approval,
        subject=await subject_text(request.db, approval.subject),
        arguments=[
            (name, fact_text(request, "approval", name, value, in_team=in_team))
            for name, value in sorted(approval.wanted.arguments.items())
        ],
        request_status=approval.status_at(now),
        own=approvals.is_same_person(approval, request.person),
        too_new=now < approves_from,
        approves_from=approves_from,
        may=request.may(RIGHTS[approval.act]),
        case=case,
        about_access=approval.act in ACCESS_ACTS,
        unopposed=approval.decided_by == approvals.UNOPPOSED.name,
    )
    return request.page("admin/operations/approval.html", view, fault)


async def decide(request: StaffRequest) -> Response:
    """Approves, which does the act, or refuses."""
    form = await request.form(DecisionForm)
    approval = await _approval(request)
    request.require(RIGHTS[approval.act])
    decision = {"approve": approvals.approve, "refuse": approvals.refuse}.get(form.act)
    if form.reason is None or decision is None:
        return await show(request, FormFault(request.text("operations.reason_missing")))
    try:
        await decision(request.ctx, approval.id, request.member, form.reason)
    except ActRefused as refusal:
        return await show(request, request.refused(refusal))
    return request.redirect(request.at_admin(f"/approvals/{approval.id}"))


async def _approval(request: StaffRequest) -> ApprovalRequest:
    approval = await approval_requests.get(request.db, ApprovalId(request.path["request"]))
    if approval is None:
        raise NotFound
    return approval


PAGES: Final = (
    StaffPage("/approvals", "incidents.decide", show_list, menu="approvals"),
    StaffPage("/approvals/{request:row}", "incidents.decide", show, decide),
)
