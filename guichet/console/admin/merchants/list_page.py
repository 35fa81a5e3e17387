"""The first page of the back office, and the merchants: what waits for somebody, list, search, a new one."""

from functools import partial
from typing import ClassVar, Final

from starlette.responses import Response

from guichet.accounts import users
from guichet.audit_log import approval_requests
from guichet.back_office.errors import NewerMerchant
from guichet.back_office.merchants import create_merchant, newest
from guichet.chain_heads import last_published
from guichet.clock import MINUTE, Instant, earlier
from guichet.console.admin.check_pages import page_of
from guichet.console.admin.reads import record_read
from guichet.console.page_request import FormFault, StaffRequest
from guichet.domain.accounts import normal_email
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import MERCHANT_STATUSES, Merchant, MerchantStatus, merchant_name
from guichet.domain.money import CURRENCIES, DEFAULT_CURRENCY, Currency
from guichet.ledger.last_audit import LastAudit, last_audit
from guichet.merchants import repository as merchants
from guichet.pages.fields import Fields, Lenient, RowId, row_id
from guichet.pages.lists import ABOVE_ALL, ById, ListPage, Pager
from guichet.pages.views import View
from guichet.server.doctor.check import DoctorCheck
from guichet.server.doctor.service_checks import last_checks

_MAX_SEARCH: Final = 100
#: Until its file is complete, a new merchant only has the test environment.
_FIRST_STATUS: Final[MerchantStatus] = "pending"
#: A worker makes the checks every few minutes at least, however long they take (`server/doctor/service_checks.py`).
_STOPPED_AFTER: Final = 15 * MINUTE


class OverviewView(View, frozen=True):
    """`marks`: what the checks found, each with the page that it leads to; `checked_at`: when a worker made them (None:
    none has), `stopped`: too long ago; `complete`: whether all ended in time. `approvals`: how many wait; None for who
    may not see them."""

    marks: list[tuple[DoctorCheck, str | None]]
    checked_at: Instant | None
    stopped: bool
    complete: bool
    approvals: int | None
    waiting: list[Merchant]
    more_wait: bool
    audit: LastAudit | None
    published_at: Instant | None


async def show_overview(request: StaffRequest) -> Response:
    """The last checks, and what waits: 200 requests and a page of merchants at most."""
    db, may = request.db, request.may
    last = await last_checks(db)
    waiting = await merchants.waiting(db)
    view = OverviewView(
        marks=[(check, page_of(request, check)) for check in last.marks] if last else [],
        checked_at=last.at if last else None,
        stopped=last is not None and last.at < earlier(request.now(), _STOPPED_AFTER),
        complete=last is not None and last.complete,
        approvals=len(await approval_requests.waiting(db, request.now())) if may("incidents.decide") else None,
        waiting=waiting[: merchants.PAGE],
        more_wait=len(waiting) > merchants.PAGE,
        audit=await last_audit(db) if may("ledger.audit") else None,
        published_at=(await last_published(db)).published_at,
    )
    return request.page("admin/merchants/overview.html", view)


class SearchForm(ById):
    q: str = ""


class MerchantListView(View, frozen=True):
    """`q`: what was searched; `next_before`: where the next page of a search begins."""

    merchants: list[Merchant]
    q: str
    next_before: int | None
    pager: Pager


async def show(request: StaffRequest) -> Response:
    """Newest first."""
    query = ById.read(request.query)
    return _list(request, query, await merchants.page(request.db, query.cursor.before or ABOVE_ALL), "")


async def find(request: StaffRequest) -> Response:
    """By id, e-mail address of somebody in the team, or a part of the name. A POST, because what is typed may be
    personal: it must not stay in addresses and their logs."""
    form = await request.form(SearchForm)
    request.require("merchants.view")
    term = form.q.strip()[:_MAX_SEARCH]
    if not term:
        return request.redirect(request.admin_url("/merchants"))
    return _list(request, form, await _search(request, term, form.cursor.before or ABOVE_ALL), term)


def _list(request: StaffRequest, query: ById, rows: list[Merchant], term: str) -> Response:
    page = ListPage.cut(rows, merchants.PAGE, query.cursor)
    view = MerchantListView(
        merchants=page.rows,
        q=term,
        next_before=page.rows[-1].id if page.has_older else None,
        pager=page.pager(lambda merchant: merchant.id, partial(request.admin_url, "/merchants")).older_only(),
    )
    return request.page("admin/merchants/list.html", view)


async def _search(request: StaffRequest, term: str, before: int) -> list[Merchant]:
    db = request.db
    if (number := row_id(term)) is not None:
        merchant = await merchants.get(db, MerchantId(number))
        return [merchant] if merchant else []
    if (email := normal_email(term)) is not None:
        user = await users.by_email(db, email)
        # The address is personal: the log says who was found by it, not what was typed.
        await record_read(request, "user.searched", "user", user.id if user else "none")
        # At most one page: nobody works for more merchants.
        return [merchant for _, merchant in await users.merchants_of(db, user.id)][: merchants.PAGE] if user else []
    return await merchants.named(db, term, before)


class NewForm(Fields):
    """`after`: the newest merchant when the form was shown, so that one form makes one merchant."""

    name: str = ""
    status: Lenient[MerchantStatus] = None
    currency: Lenient[Currency] = None
    after: Lenient[RowId] = None


class NewView(View, frozen=True):
    after: int
    statuses: ClassVar = MERCHANT_STATUSES
    status: ClassVar = _FIRST_STATUS
    currencies: ClassVar = CURRENCIES
    currency: ClassVar = DEFAULT_CURRENCY


async def show_new(request: StaffRequest) -> Response:
    request.require("merchants.change")
    return request.page("admin/merchants/new.html", NewView(await newest(request.db)))


async def create(request: StaffRequest) -> Response:
    """Without API keys: nobody of the staff sees those of a merchant. Its owner makes them in the console."""
    form = await request.form(NewForm)
    request.require("merchants.change")
    name, status, currency = merchant_name(form.name), form.status, form.currency
    if name is None or status is None or currency is None:
        raise FormFault(request.name_fault(form.name, "admin_merchants.incomplete"))
    try:
        merchant, _ = await create_merchant(request.ctx, name, status, currency, {}, request.actor, form.after or 0)
    except NewerMerchant:
        raise FormFault(request.text("admin_merchants.sent_twice"), 409) from None
    return request.done(request.admin_url(f"/merchants/{merchant.id}"), "merchant_created")
