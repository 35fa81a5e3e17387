"""The search for payments across merchants, and one payment: its timeline, and what its provider knows. Every search
and every payment that is opened is an entry of the audit log."""

from typing import Any, Final

from markupsafe import Markup
from starlette.responses import Response

from guichet.clock import NEVER, Instant
from guichet.console.admin.operations.case import Case, case_of
from guichet.console.admin.reads import record_read
from guichet.console.facts import changed_facts, fact_text, label
from guichet.console.page_request import StaffRequest
from guichet.db.engine import require
from guichet.domain.audit_log import CONSOLE, Facts
from guichet.domain.catalogue import Catalogue
from guichet.domain.ids import MerchantId, PaymentId
from guichet.domain.money import Currency
from guichet.domain.payments import Payment, Refund
from guichet.history.payment_history import read_history
from guichet.history.staff_search import LONGEST, search
from guichet.history.timeline import TimelineEntry, timeline
from guichet.merchants import repository as merchants
from guichet.pages.fields import or_not_found
from guichet.pages.views import View
from guichet.payments import repository

_AMOUNTS: Final = ("amount", "debited", "waiting", "wallet")
#: Names of values that are instants end with it.
_INSTANT: Final = "_at"
#: What says nothing: unknown, or an act without facts.
_EMPTY: Final = (None, "", "{}")
#: What another value says better: the sentence for the customer says what the code does, the kind of an incident what
#: concerns the merchant. What an act changed is written out fact by fact.
_LEFT_OUT: Final = frozenset({"after", "before", "concern", "message"})
#: Why something failed or is contested is a word of ours; other reasons are what a person wrote.
_REASONS: Final = {
    "dispute.opened": "operations.dispute_reason.",
    "payment.failed": "operations.failure_reason.",
    "refund.failed": "operations.failure_reason.",
}


class SearchView(View, frozen=True):
    """`payments`: None before a search; `names`: of their merchants; `operators`: the catalogue that names them."""

    payments: list[Payment] | None
    q: str
    names: dict[MerchantId, str] = {}
    operators: Catalogue | None = None


async def show_search(request: StaffRequest) -> Response:
    """By reference, external_id, telephone number or the provider's reference. A POST, because what is typed is
    personal: it must not stay in addresses and their logs."""
    return request.page("admin/operations/payments.html", SearchView(None, ""))


async def find(request: StaffRequest) -> Response:
    form = await request.fields()
    request.require("payments.search")
    term = form.get("q", "").strip()[:LONGEST]
    payments = await search(request.ctx.db, request.ctx.registry, term)
    if term:
        # What was typed may be personal: the log, which nobody can change, says what was found by it.
        references = [payment.reference for payment in payments]
        subject = references[0] if len(payments) == 1 else "several" if payments else "none"
        facts: Facts = {"count": len(payments), "payments": references}
        await record_read(request, "payment.searched", "payment", subject, facts=facts)
    names = await merchants.names(request.db, {payment.merchant_id for payment in payments})
    view = SearchView(payments if term else None, term, names, request.ctx.catalogues.base)
    return request.page("admin/operations/payments.html", view)


class TimelineLine(View, frozen=True):
    """`facts`: names and values."""

    at: str
    text: Markup
    facts: list[tuple[str, str]]


class StaffPaymentView(View, frozen=True):
    payment: Payment
    refund: Refund | None
    #: None also where nobody will ask.
    next_poll_at: Instant | None
    case: Case
    timeline: list[TimelineLine]


async def show(request: StaffRequest) -> Response:
    payment = or_not_found(await repository.by_id(request.db, PaymentId(request.path["payment"])))
    await record_read(request, "payment.viewed", "payment", payment.reference, payment.merchant_id)
    history = await read_history(request.db, payment)
    entries = timeline(history, for_staff=True)
    if not request.may("audit_log.view"):  # What people did stands in the audit log.
        entries = [entry for entry in entries if entry.kind != "person.acted"]
    view = StaffPaymentView(
        payment=payment,
        refund=history.refund,
        next_poll_at=None if payment.next_poll_at == NEVER else payment.next_poll_at,
        case=require(await case_of(request.ctx, payment.reference)),
        timeline=[_line(request, payment.currency, entry) for entry in entries],
    )
    return request.page("admin/operations/payment.html", view)


def _line(request: StaffRequest, currency: Currency, entry: TimelineEntry) -> TimelineLine:
    text = request.text(f"operations.event.{entry.kind}")
    return TimelineLine(request.date_time(entry.at), text, _facts(request, currency, entry))


def _facts(request: StaffRequest, currency: Currency, entry: TimelineEntry) -> list[tuple[str, str]]:
    entry_facts = [("subject", entry.subject), *entry.values.items(), *entry.staff.items()]
    lines = [
        (label(request, name), _text(request, currency, entry, name, value))
        for name, value in entry_facts
        if value not in _EMPTY and name not in _LEFT_OUT and (name, value) != ("os_user", CONSOLE)
    ]
    if entry.kind == "person.acted":
        changes = entry.staff["before"], entry.staff["after"]
        lines += changed_facts(request, entry.subject, *changes, in_team=True)
    return lines


def _text(request: StaffRequest, currency: Currency, entry: TimelineEntry, name: str, value: Any) -> str:
    if name == "postings":
        moved = (
            f"{posting.source} → {posting.destination} {request.amount(posting.amount, currency)}" for posting in value
        )
        return "; ".join(moved)
    if name in _AMOUNTS:
        return request.amount(value, currency)
    if name.endswith(_INSTANT):
        return request.date_time(value)
    if name == "reason" and entry.kind in _REASONS:
        return request.word(_REASONS[entry.kind], value)
    return fact_text(request, entry.subject, name, value)
