"""What a person must look into: open incidents by kind, late money, disputes; and one case with the acts it allows.

An act that moves money is only asked for here: another person approves it (`approvals_page.py`).
"""

from collections import Counter
from typing import Any, Final

from starlette.responses import Response

from guichet.accounts import approvals
from guichet.back_office import incident_acts
from guichet.console.admin.operations.case import Case, case_of
from guichet.console.admin.reads import record_read
from guichet.console.forms import reason_of
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.db.engine import require
from guichet.disputes import repository as dispute_repository
from guichet.domain.approvals import Arguments, WantedAct
from guichet.domain.audit_log import ActRefused, FactName, Facts
from guichet.domain.disputes import BEARERS
from guichet.domain.errors import NotFound
from guichet.domain.ids import IncidentId
from guichet.incidents import repository as incidents
from guichet.late_money import repository as late_result_repository
from guichet.pages.fields import row_id
from guichet.provider_callbacks import unmatched as unmatched_callbacks

#: The lists of the page, whose lengths are kept in the audit log.
_LISTS: Final[tuple[FactName, ...]] = ("incidents", "late", "disputes", "callbacks")
#: Unmatched callbacks that the page shows; `guichet incidents` lists more.
_CALLBACKS_SHOWN: Final = 20


async def show_list(request: StaffRequest) -> Response:
    """Live before test, oldest first, at most 500; `?kind=` shows those of one kind.

    The page quotes what providers said, which may name people: the entry of the audit log says which lists were read
    and how long they were. What was open at that time is known from the incidents themselves.
    """
    db = request.db
    found = await incidents.still_open(db)
    kind = next((each for each in incidents.KINDS if each == request.query.get("kind")), None)
    view: dict[str, Any] = {
        "incidents": [each for each in found if kind in (None, each.kind)],
        "kinds": sorted(Counter(each.kind for each in found).items()),
        "kind": kind,
        "late": await late_result_repository.still_open(db),
        "disputes": await dispute_repository.undecided(db),
        "callbacks": (await unmatched_callbacks.list_latest(db))[:_CALLBACKS_SHOWN],
    }
    shown: Facts = {name: len(view[name]) for name in _LISTS}
    await record_read(request, "incidents.listed", "incident", kind or "all", shown=shown)
    return request.show("admin/operations/incidents.html", 200, **view)


async def show(request: StaffRequest) -> Response:
    return await _page(request, await _case(request))


async def change(request: StaffRequest) -> Response:
    """Closes an incident, or asks for an act that another person approves."""
    form = await request.fields()
    ctx = request.ctx
    request.require("incidents.decide")
    case = await _case(request)
    reason = reason_of(form)
    if reason is None:
        return await _page(request, case, 422, request.text("operations.reason_missing"), form)
    if form.get("act") == "close":
        await _close(request, case, row_id(form.get("incident")), reason)
        return request.redirect(request.at_admin(f"/incidents/{case.subject.reference}"))
    wanted = _wanted(case, form, reason)
    if wanted is None:
        return await _page(request, case, 422, request.text("operations.incomplete"), form)
    try:
        approval = await approvals.ask(ctx, wanted, request.person, approvals.CONSOLE)
    except ActRefused as refusal:
        return await _page(request, case, 409, typed=form, refusal=refusal)
    return request.redirect(request.at_admin(f"/approvals/{approval.id}"))


async def _close(request: StaffRequest, case: Case, number: int | None, reason: str) -> None:
    """Only an incident of this case: the reason was written about what this page shows. One that somebody else closed a
    moment ago is no fault: the page that follows shows what is still open."""
    if number in {each.id for each in case.incidents}:
        await incident_acts.close(request.db, request.ctx.clock, IncidentId(require(number)), request.actor, reason)


def _wanted(case: Case, form: dict[str, str], reason: str) -> WantedAct | None:
    """The act that the form asks for; None when a choice is missing."""
    reference = case.subject.reference
    match form.get("act"):
        case "settle":
            succeeded = {"succeeded": True, "failed": False}.get(form.get("outcome", ""))
            if succeeded is None:
                return None
            arguments: Arguments = {"succeeded": succeeded, "override": form.get("override") == "yes"}
            return WantedAct("refund.settle" if case.refund else "payment.settle", reference, arguments, reason)
        case "payee":
            return WantedAct("refund.confirm_payee", reference, {"phone": form.get("phone", "")[:20]}, reason)
        case "late" if form.get("to") in case.decisions:
            return WantedAct("late_money.resolve", reference, {"to": form["to"]}, reason)
        case "dispute" if form.get("from") in BEARERS:
            return WantedAct("dispute.resolve", form.get("dispute", ""), {"from": form["from"]}, reason)
    return None


async def _case(request: StaffRequest) -> Case:
    found = await case_of(request.ctx, request.path["reference"])
    if found is None:
        raise NotFound
    return found


async def _page(
    request: StaffRequest,
    case: Case,
    status: int = 200,
    fault: Any = None,
    typed: dict[str, str] | None = None,
    refusal: ActRefused | None = None,
) -> Response:
    payment = case.payment
    await record_read(request, "payment.viewed", "payment", payment.reference, payment.merchant_id)
    view = {"case": case, "may_decide": request.may("incidents.decide"), "typed": typed or {}, "bearers": BEARERS}
    return request.show("admin/operations/case.html", status, fault=fault, refusal=refusal, **view)


PAGES: Final = (
    StaffPage("/incidents", "incidents.view", show_list, menu="incidents"),
    StaffPage("/incidents/{reference}", "incidents.view", show, change),
)
