"""Anonymising one customer of a merchant, as `guichet merchant anonymise-customer`; the worker does it."""

from typing import ClassVar, Final

from starlette.responses import Response

from guichet.back_office.anonymisation import read_phone
from guichet.back_office.jobs.tasks import AnonymiseCustomer
from guichet.console.admin.merchants.of_merchant import merchant_of, show_file
from guichet.console.admin.staff_jobs import JobsView, ask_worker, jobs_view
from guichet.console.forms import Confirmed, Reason
from guichet.console.page_request import FormFault, StaffRequest
from guichet.domain.accounts import normal_email
from guichet.domain.merchants import Merchant
from guichet.domain.staff_jobs import RIGHT_OF
from guichet.pages.fields import Fields
from guichet.pages.views import View

#: References of payments that are not at their end which the page lists.
_MOST_WAITING: Final = 200


class CustomerForm(Fields):
    phone: str = ""
    email: str = ""
    reason: Reason = None
    confirm: Confirmed = False


async def change(request: StaffRequest) -> Response:
    """What was typed is kept nowhere but, encrypted, in the job, until it is done."""
    form = await request.form(CustomerForm)
    request.require(RIGHT_OF["anonymise_customer"])
    merchant = await merchant_of(request)
    return await ask_worker(request, _path(merchant), _task(request, form), merchant.id)


def _task(request: StaffRequest, form: CustomerForm) -> AnonymiseCustomer:
    typed_phone, typed_email = form.phone.strip(), form.email.strip()
    phone, email = read_phone(typed_phone), normal_email(typed_email)
    if (typed_phone and phone is None) or (typed_email and email is None) or not (typed_phone or typed_email):
        raise FormFault(request.text("anonymise.customer_wrong"))
    if form.reason is None:
        raise FormFault(request.text("operations.reason_missing"))
    if not form.confirm:
        raise FormFault(request.text("anonymise.confirm_missing"))
    return AnonymiseCustomer(phone, email, form.reason)


def _path(merchant: Merchant) -> str:
    return f"/merchants/{merchant.id}/anonymise"


class AnonymiseView(View, frozen=True):
    jobs: JobsView
    most_waiting: ClassVar = _MOST_WAITING


async def show(request: StaffRequest) -> Response:
    merchant = await merchant_of(request)
    jobs = await jobs_view(request, _path(merchant), "anonymise_customer", merchant_id=merchant.id)
    return show_file(request, merchant, "anonymise", AnonymiseView(jobs))
