"""The search for payments across merchants, and one payment: its story, and what its provider knows of it. Every search
and every payment that is opened is an entry of the audit log."""

from typing import Final

from starlette.responses import Response

from guichet.console.admin.operations.case import case_of
from guichet.console.admin.operations.story_view import story_lines
from guichet.console.admin.reads import record_read
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.db.engine import require
from guichet.domain.audit_log import Facts
from guichet.domain.errors import NotFound
from guichet.domain.ids import PaymentId
from guichet.history.payment_history import read_story
from guichet.history.staff_search import LONGEST, search
from guichet.history.timeline import timeline
from guichet.payments import repository


async def show_search(request: StaffRequest) -> Response:
    """By reference, external_id, telephone number or the provider's reference. A POST, because what is typed is
    personal: it must not stay in addresses and their logs."""
    return request.show("admin/operations/payments.html", found=None, q="")


async def find(request: StaffRequest) -> Response:
    form = await request.fields()
    ctx = request.ctx
    request.require("payments.search")
    typed = form.get("q", "").strip()[:LONGEST]
    found = await search(ctx.db, ctx.registry, typed)
    if typed:
        # What was typed may be personal: the log, which nobody can change, says what was found by it.
        references = [each.reference for each in found]
        subject = references[0] if len(found) == 1 else "several" if found else "none"
        shown: Facts = {"count": len(found), "payments": references}
        await record_read(request, "payment.searched", "payment", subject, shown=shown)
    return request.show("admin/operations/payments.html", found=found if typed else None, q=typed)


async def show(request: StaffRequest) -> Response:
    ctx = request.ctx
    number: int = request.path["payment"]
    payment = await repository.by_id(ctx.db, PaymentId(number))
    if payment is None:
        raise NotFound
    await record_read(request, "payment.viewed", "payment", payment.reference, payment.merchant_id)
    story = await read_story(ctx.db, payment)
    told = timeline(story, for_staff=True)
    if not request.may("audit_log.view"):  # What people did stands in the audit log.
        told = [entry for entry in told if entry.kind != "person.acted"]
    view = {
        "payment": payment,
        "refund": story.refund,
        "case": require(await case_of(ctx, payment.reference)),
        "story": story_lines(request, payment.currency, told),
    }
    return request.show("admin/operations/payment.html", 200, **view)


PAGES: Final = (
    StaffPage("/payments", "payments.search", show_search, find, menu="payments"),
    StaffPage("/payments/{payment:row}", "payments.search", show),
)
