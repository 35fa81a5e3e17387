"""What a person must look into: open incidents by kind, late money, disputes; and one case with the acts it allows.

An act that moves money is only asked for here: another person approves it (`approvals_page.py`).
"""

from collections import Counter
from typing import Annotated, Final, Literal

from pydantic import Field
from starlette.responses import Response

from guichet.accounts import approvals
from guichet.audit_log import approval_requests
from guichet.back_office import incident_acts
from guichet.clock import Instant
from guichet.console.admin.operations.case import Case, case_of
from guichet.console.admin.reads import record_read
from guichet.console.forms import Confirmed, Reason
from guichet.console.page_request import FormFault, StaffRequest
from guichet.db.engine import require
from guichet.db.references import parse_reference
from guichet.disputes import repository as dispute_repository
from guichet.domain.approvals import ActRequest, ApprovalRequest, Arguments
from guichet.domain.audit_log import CONSOLE, Facts
from guichet.domain.disputes import Bearer, Dispute
from guichet.domain.errors import NotFound
from guichet.domain.ids import IncidentId, MerchantId
from guichet.domain.late_results import LateResult
from guichet.incidents import repository as incidents
from guichet.incidents.repository import Incident
from guichet.late_money import repository as late_result_repository
from guichet.merchants import repository as merchants
from guichet.pages.fields import Fields, Lenient, RowId, choice
from guichet.pages.views import View
from guichet.provider_callbacks import unmatched as unmatched_callbacks

#: Unmatched callbacks that the page shows; `guichet incidents` lists more.
_CALLBACKS_SHOWN: Final = 20


class IncidentsView(View, frozen=True):
    """`kinds`: how many incidents of each are open; `kind`: the one that is shown, None for all. `names`: of the
    merchants."""

    incidents: list[Incident]
    kinds: list[tuple[str, int]]
    kind: str | None
    late: list[LateResult]
    disputes: list[Dispute]
    callbacks: list[tuple[int, str, str, str, Instant]]
    names: dict[MerchantId, str]


async def show_list(request: StaffRequest) -> Response:
    """Live before test, oldest first, at most 500; `?kind=` shows those of one kind.

    The page quotes what providers said, which may name people: the entry of the audit log says which lists were read
    and how long they were. What was open at that time is known from the incidents themselves.
    """
    db = request.db
    still_open = await incidents.still_open(db)
    kind = choice(request.query.get("kind"), incidents.KINDS)
    late, disputes = await late_result_repository.still_open(db), await dispute_repository.undecided(db)
    listed = [incident for incident in still_open if kind in (None, incident.kind)]
    view = IncidentsView(
        incidents=listed,
        kinds=sorted(Counter(incident.kind for incident in still_open).items()),
        kind=kind,
        late=late,
        disputes=disputes,
        callbacks=(await unmatched_callbacks.list_latest(db))[:_CALLBACKS_SHOWN],
        names=await merchants.names(
            db,
            {incident.merchant_id for incident in listed}
            | {result.merchant_id for result in late}
            | {dispute.merchant_id for dispute in disputes},
        ),
    )
    facts: Facts = {
        "incidents": len(view.incidents),
        "late": len(view.late),
        "disputes": len(view.disputes),
        "callbacks": len(view.callbacks),
    }
    await record_read(request, "incidents.listed", "incident", kind or "all", facts=facts)
    return request.page("admin/operations/incidents.html", view)


class CaseForm(Fields):
    """One act each, with its reason: an incident is closed (`incident`), the payment or refund is settled (`outcome`,
    `override`), the payee of a refund (`phone`) or the account is confirmed, late money (`to`) or a dispute (`from`) is
    decided."""

    act: str = ""
    reason: Reason = None
    incident: Lenient[RowId] = None
    outcome: Lenient[Literal["succeeded", "failed"]] = None
    override: Confirmed = False
    phone: str = ""
    to: str = ""
    dispute: str = ""
    bearer: Annotated[Lenient[Bearer], Field(alias="from")] = None


class NoCaseView(View, frozen=True):
    """Incidents about no payment or refund. `dispute`: the one that they are about, which matches no payment."""

    reference: str
    merchant: str
    incidents: list[Incident]
    dispute: Dispute | None
    waiting: list[ApprovalRequest]


async def show(request: StaffRequest) -> Response:
    case = await case_of(request.ctx, request.path["reference"])
    if case is None:
        return await _show_without_case(request)
    payment = case.payment
    await record_read(request, "payment.viewed", "payment", payment.reference, payment.merchant_id)
    return request.page("admin/operations/case.html", case=case)


async def _show_without_case(request: StaffRequest) -> Response:
    view = await _without_case(request)
    facts: Facts = {"incidents": len(view.incidents)}
    await record_read(request, "incidents.listed", "incident", view.reference, facts=facts)
    return request.page("admin/operations/no_case.html", view)


async def _without_case(request: StaffRequest) -> NoCaseView:
    """Raises NotFound when neither an open incident nor an undecided dispute has the reference."""
    db, reference = request.db, parse_reference(request.path["reference"])
    open_incidents = [incident for incident in await incidents.still_open(db) if incident.reference == reference]
    undecided = await dispute_repository.undecided(db)
    dispute = next((dispute for dispute in undecided if dispute.reference == reference), None)
    if reference is None or not (open_incidents or dispute):
        raise NotFound
    request_about = await approval_requests.about(db, reference, request.ctx.clock.now())
    waiting = [] if request_about is None else [request_about]
    about = dispute or open_incidents[0]
    merchant = require(await merchants.get(db, about.merchant_id)).name
    return NoCaseView(reference, merchant, open_incidents, dispute, waiting)


async def change(request: StaffRequest) -> Response:
    """Closes an incident, or asks for an act that another person approves."""
    form = await request.form(CaseForm)
    ctx = request.ctx
    request.require("incidents.decide")
    case = await case_of(ctx, request.path["reference"])
    open_incidents = (await _without_case(request)).incidents if case is None else case.incidents
    if form.reason is None:
        raise FormFault(request.text("operations.reason_missing"))
    if form.act == "close":
        await _close(request, open_incidents, form.incident, form.reason)
        about = "/incidents" if case is None else f"/incidents/{case.subject.reference}"
        return request.done(request.admin_url(about), "incident_closed")
    act = _act(case, form, form.reason)
    if act is None:
        raise FormFault(request.text("operations.incomplete"))
    approval = await approvals.ask(ctx, act, request.person, CONSOLE)
    return request.done(request.admin_url(f"/approvals/{approval.id}"), "asked")


async def _close(request: StaffRequest, open_incidents: list[Incident], number: int | None, reason: str) -> None:
    """Only an incident of this case: the reason was written about what this page shows. One that somebody else closed a
    moment ago is no fault: the page that follows shows what is still open."""
    if number is not None and number in {incident.id for incident in open_incidents}:
        await incident_acts.close(request.db, request.ctx.clock, IncidentId(number), request.actor, reason)


def _act(case: Case | None, form: CaseForm, reason: str) -> ActRequest | None:
    """The act that the form asks for; None when a choice is missing."""
    if form.act == "dispute" and form.bearer is not None:
        return ActRequest("dispute.resolve", form.dispute, {"from": form.bearer}, reason)
    return None if case is None else _act_about(case, form, reason)


def _act_about(case: Case, form: CaseForm, reason: str) -> ActRequest | None:
    reference = case.subject.reference
    match form.act:
        case "settle" if form.outcome is not None:
            arguments: Arguments = {"succeeded": form.outcome == "succeeded", "override": form.override}
            return ActRequest("refund.settle" if case.refund else "payment.settle", reference, arguments, reason)
        case "payee":
            return ActRequest("refund.confirm_payee", reference, {"phone": form.phone[:20]}, reason)
        case "account":
            return ActRequest("account.confirm", reference, {}, reason)
        case "late" if form.to in case.decisions:
            return ActRequest("late_money.resolve", reference, {"to": form.to}, reason)
    return None
