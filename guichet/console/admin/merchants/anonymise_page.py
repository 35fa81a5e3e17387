"""Anonymising one customer of a merchant, as `guichet merchant anonymise-customer`; the worker does it."""

from typing import Any, Final

from starlette.responses import Response

from guichet.back_office.anonymisation import read_phone
from guichet.back_office.jobs import repository
from guichet.back_office.jobs.errors import TooManyJobs
from guichet.back_office.jobs.tasks import AnonymiseCustomer
from guichet.console.admin.fields import reason_of
from guichet.console.admin.merchants.of_merchant import merchant_of, show_file
from guichet.console.admin.staff_jobs import ask_worker, chosen_job, jobs_view
from guichet.console.forms import is_confirmed
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.console.sent_once import form_token, new_form_token
from guichet.domain.accounts import normal_email
from guichet.domain.merchants import Merchant
from guichet.domain.staff_jobs import MOST_PENDING, RIGHT_OF, StaffJob, StaffJobKind

_KIND: Final[StaffJobKind] = "anonymise_customer"
#: References of payments that are not at their end which the page lists.
_MOST_WAITING: Final = 200


async def show(request: StaffRequest) -> Response:
    merchant = await merchant_of(request)
    return await _page(request, merchant, shown=await chosen_job(request, (_KIND,), merchant.id))


async def change(request: StaffRequest) -> Response:
    """What was typed is kept nowhere but, encrypted, in the job, until it is done."""
    form = await request.form()
    request.require(RIGHT_OF[_KIND])
    merchant = await merchant_of(request)
    typed = [form.get(name, "").strip() for name in ("phone", "email")]
    phone, email = read_phone(typed[0]), normal_email(typed[1])
    reason = reason_of(form)
    if (typed[0] and phone is None) or (typed[1] and email is None) or not any(typed):
        return await _page(request, merchant, 422, request.text("anonymise.customer_wrong"), form)
    if reason is None:
        return await _page(request, merchant, 422, request.text("operations.reason_missing"), form)
    if not is_confirmed(form):
        return await _page(request, merchant, 422, request.text("anonymise.confirm_missing"), form)
    try:
        job_id = await ask_worker(request, form, AnonymiseCustomer(phone, email, reason), merchant.id)
    except TooManyJobs:
        return await _page(request, merchant, 409, request.text("jobs.too_many", most=MOST_PENDING), form)
    return request.redirect(request.at_admin(_path(merchant), job=str(job_id)))


def _path(merchant: Merchant) -> str:
    return f"/merchants/{merchant.id}/anonymise"


async def _page(
    request: StaffRequest,
    merchant: Merchant,
    status: int = 200,
    fault: Any = None,
    form: dict[str, str] | None = None,
    shown: StaffJob | None = None,
) -> Response:
    latest = await repository.latest_of_merchant(request.db, merchant.id)
    view = {
        **await jobs_view(request, _path(merchant), latest, shown),
        "typed": form or {},
        "token": form_token(form or {}) or new_form_token(),
        "most_waiting": _MOST_WAITING,
    }
    return show_file(request, merchant, "anonymise", status, fault=fault, **view)


PAGES: Final = (StaffPage("/merchants/{merchant:row}/anonymise", RIGHT_OF[_KIND], show, change),)
