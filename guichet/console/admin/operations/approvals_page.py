"""Money acts that wait for a second person: the list, and one request to approve or to refuse."""

from typing import Final

from markupsafe import Markup
from msgspec import structs
from starlette.responses import Response

from guichet.accounts import approvals
from guichet.accounts.approval_subjects import RequestSubject, subjects_of
from guichet.audit_log import approval_requests
from guichet.clock import Instant
from guichet.console.admin.operations.case import Case, case_of
from guichet.console.admin.reads import record_read
from guichet.console.facts import fact_text
from guichet.console.forms import ReasonForm
from guichet.console.page_request import FormFault, StaffRequest
from guichet.db.engine import require
from guichet.domain.approvals import ACCESS_ACTS, RIGHTS, ApprovalRequest
from guichet.domain.audit_log import Facts
from guichet.domain.ids import ApprovalId
from guichet.domain.money import CURRENCIES
from guichet.ledger.wallets import held
from guichet.pages.fields import or_not_found
from guichet.pages.views import View
from guichet.treasury.movements import is_statement

_DECIDED_SHOWN: Final = 50


class RequestRow(View, frozen=True):
    """`href`: of the request; `subject_href`: of what it is about; `merchant_href`: None where it is the service
    itself. `amount`: None where none is known."""

    href: str
    request: ApprovalRequest
    subject: str
    subject_href: str
    merchant: str
    merchant_href: str | None
    amount: str | None
    status: str


class ApprovalsView(View, frozen=True):
    waiting: list[RequestRow]
    decided: list[RequestRow]


async def show_list(request: StaffRequest) -> Response:
    """What waits, oldest first; then the latest requests, whatever became of them."""
    now = request.now()
    waiting = await approval_requests.waiting(request.db, now)
    latest = await approval_requests.latest(request.db, _DECIDED_SHOWN)
    decided = [approval for approval in latest if approval.status_at(now) != "pending"]
    facts: Facts = {
        "waiting": [approval.id for approval in waiting],
        "decided": [approval.id for approval in decided],
    }
    await record_read(request, "approvals.listed", "approval", "list", facts=facts)
    subjects = await subjects_of(request.db, [*waiting, *decided])
    lists = [[_row(request, approval, subjects[approval.id], now) for approval in rows] for rows in (waiting, decided)]
    return request.page("admin/operations/approvals.html", ApprovalsView(*lists))


def _row(request: StaffRequest, approval: ApprovalRequest, about: RequestSubject, now: Instant) -> RequestRow:
    own = approval.act in ("treasury.record", "staff.add", "staff.restore")
    name, href = _subject(request, approval, about)
    return RequestRow(
        href=request.admin_url(f"/approvals/{approval.id}"),
        request=approval,
        subject=name,
        subject_href=href,
        merchant=about.merchant,
        merchant_href=None if own else request.admin_url(f"/merchants/{approval.merchant_id}"),
        amount=request.amount(about.amount, about.currency) if about.amount is not None and about.currency else None,
        status=approval.status_at(now),
    )


def _subject(request: StaffRequest, approval: ApprovalRequest, about: RequestSubject) -> tuple[str, str]:
    """How what the request is about is named, and the address of its page."""
    match approval.act:
        case "wallet.reopen":
            merchant, _, currency = approval.subject.partition("/")
            return request.text("operations.wallet_of", currency=currency), request.admin_url(f"/wallets/{merchant}")
        case "treasury.record":
            return approval.subject, request.admin_url("/treasury")
        case "team.give_role" | "staff.add" | "staff.restore":
            person = require(about.person)
            pages = "users" if person.staff_role is None else "staff"
            return person.email, request.admin_url(f"/{pages}/{person.id}")
        case _:
            return approval.subject, request.admin_url(f"/incidents/{approval.subject}")


class DecisionForm(ReasonForm):
    act: str = ""


class ApprovalView(View, frozen=True):
    """`own`: the reader asked for it; `too_new`: they may approve nothing of the kind before `approves_from`; `case`:
    what is decided about, None for a wallet, our own money or a person; `effect`: what happens when it is approved.
    `unopposed`: nobody objected to it."""

    row: RequestRow
    request: ApprovalRequest
    effect: Markup
    arguments: list[tuple[str, str]]
    request_status: str
    own: bool
    too_new: bool
    approves_from: Instant
    may: bool
    case: Case | None
    about_access: bool
    unopposed: bool


async def show(request: StaffRequest) -> Response:
    approval, now = await _approval(request), request.now()
    caseless = approval.act in ACCESS_ACTS or approval.act in ("wallet.reopen", "treasury.record")
    case = None if caseless else await case_of(request.ctx, approval.subject)
    approves_from = await approvals.may_approve_from(request.db, approval.act, request.person, now)
    in_team = approval.act == "team.give_role"
    if case is not None:
        await record_read(request, "payment.viewed", "payment", case.payment.reference, approval.merchant_id)
    about = (await subjects_of(request.db, [approval]))[approval.id]
    row = _row(request, approval, await _with_amount(request, approval, about, case), now)
    view = ApprovalView(
        row=row,
        request=approval,
        effect=request.text(_effect(approval), amount=row.amount or "–", merchant=row.merchant, subject=row.subject),
        arguments=[
            (name, fact_text(request, "approval", name, value, in_team=in_team))
            for name, value in sorted(approval.act_request.arguments.items())
            if not (name == "amount" and row.amount)
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
    return request.page("admin/operations/approval.html", view)


async def _with_amount(
    request: StaffRequest, approval: ApprovalRequest, about: RequestSubject, case: Case | None
) -> RequestSubject:
    """The same with the amount that moves, where it is another one than that of the payment."""
    if case is not None and case.late is not None and approval.act == "late_money.resolve":
        return structs.replace(about, amount=case.late.amount or about.amount)
    if approval.act != "wallet.reopen":
        return about
    code = approval.subject.partition("/")[2]
    currency = next((currency for currency in CURRENCIES if currency == code), None)
    if currency is None:
        return about
    held_amounts = await held(request.db, approval.merchant_id, "live", currency)
    return structs.replace(about, amount=held_amounts.suspended, currency=currency)


def _effect(approval: ApprovalRequest) -> str:
    """The key of the sentence that says what happens."""
    arguments = approval.act_request.arguments
    variant = {
        "payment.settle": "succeeded" if arguments.get("succeeded") is True else "failed",
        "refund.settle": "succeeded" if arguments.get("succeeded") is True else "failed",
        "late_money.resolve": str(arguments.get("to")).replace("-", "_"),
        "dispute.resolve": str(arguments.get("from")),
        "treasury.record": "statement" if is_statement(arguments) else "movement",
    }.get(approval.act)
    return f"operations.effect.{approval.act}" + (f".{variant}" if variant else "")


async def decide(request: StaffRequest) -> Response:
    """Approves, which does the act, or refuses."""
    form = await request.form(DecisionForm)
    approval = await _approval(request)
    request.require(RIGHTS[approval.act])
    decision = {"approve": approvals.approve, "refuse": approvals.refuse}.get(form.act)
    if form.reason is None or decision is None:
        raise FormFault(request.text("operations.reason_missing"))
    await decision(request.ctx, approval.id, request.member, form.reason)
    return request.done(
        request.admin_url(f"/approvals/{approval.id}"), "approved" if form.act == "approve" else "refused"
    )


async def _approval(request: StaffRequest) -> ApprovalRequest:
    return or_not_found(await approval_requests.get(request.db, ApprovalId(request.path["request"])))
