"""The checks of `guichet doctor`, and our accounts with providers: whether they answer, what is in them, what is set up
wrong; the worker asks them."""

from typing import ClassVar, Final, Literal

from starlette.responses import Response

from guichet.back_office.aggregated_merchants import KEPT, NameWaveMerchants, aggregating
from guichet.back_office.jobs.tasks import AboutAccounts, ProviderBalances, ProviderCheck, ProviderDeepCheck
from guichet.console.admin.check_pages import page_of
from guichet.console.admin.staff_jobs import JobsView, ask_worker, jobs_view
from guichet.console.forms import Confirmed
from guichet.console.page_request import FormFault, StaffRequest
from guichet.domain.staff_jobs import RIGHT_OF
from guichet.pages.fields import Fields, Lenient
from guichet.pages.views import View
from guichet.server.doctor.service_checks import service_checks

#: Seconds after which the page shows what it has.
_WITHIN: Final = 6.0
_PROVIDERS: Final = "/doctor/providers"
_WAVE: Final = "/doctor/wave-merchants"
_AccountKind = Literal["provider_check", "provider_deep_check", "provider_balances"]
_TASKS: Final[dict[_AccountKind, type[AboutAccounts]]] = {
    "provider_check": ProviderCheck,
    "provider_deep_check": ProviderDeepCheck,
    "provider_balances": ProviderBalances,
}


async def show(request: StaffRequest) -> Response:
    checks, complete = await service_checks(request.ctx, _WITHIN)
    linked_checks = [(check, page_of(request, check)) for check in checks]
    return request.page("admin/operations/doctor.html", checks=linked_checks, complete=complete)


class AccountsForm(Fields):
    """`account`: empty for all."""

    kind: Lenient[_AccountKind] = None
    account: str = ""


class AccountsView(View, frozen=True):
    """`kinds` and `accounts`: pairs of a value and its text; `aggregates`: whether Wave's merchants have a page."""

    jobs: JobsView
    kinds: list[tuple[str, str]]
    accounts: list[tuple[str, str]]
    aggregates: bool


async def ask_accounts(request: StaffRequest) -> Response:
    """As `guichet providers check` (and `--deep`) and `guichet providers balances`."""
    form = await request.form(AccountsForm)
    kind = form.kind
    if kind is None or (form.account and form.account not in request.ctx.providers.accounts):
        raise FormFault(request.text("provider_jobs.incomplete"))
    request.require(RIGHT_OF[kind])
    return await ask_worker(request, _PROVIDERS, _TASKS[kind](form.account or None))


async def show_accounts(request: StaffRequest) -> Response:
    accounts, kinds = request.ctx.providers.accounts, [kind for kind in _TASKS if request.may(RIGHT_OF[kind])]
    view = AccountsView(
        jobs=await jobs_view(request, _PROVIDERS, *kinds),
        kinds=[(kind, request.text(f"jobs.kind.{kind}")) for kind in kinds],
        accounts=[("", request.text("provider_jobs.all")), *((name, name) for name in accounts)],
        aggregates=bool(aggregating(accounts)) and request.may(RIGHT_OF["wave_merchants"]),
    )
    return request.page("admin/operations/providers.html", view)


class WaveForm(Fields):
    account: str = ""
    confirm: Confirmed = False


class WaveView(View, frozen=True):
    """`able`: accounts that have aggregated merchants; `most`: merchants of a result."""

    jobs: JobsView
    accounts: list[tuple[str, str]]
    able: list[str]
    most: ClassVar = KEPT


async def ask_wave(request: StaffRequest) -> Response:
    """Aggregated merchants of Wave that are missing are made, as `guichet providers setup wave-merchants` does."""
    form = await request.form(WaveForm)
    request.require(RIGHT_OF["wave_merchants"])
    able = aggregating(request.ctx.providers.accounts)
    if not able or (form.account and form.account not in able):
        raise FormFault(request.text("wave_merchants.no_account"))
    if not form.confirm:
        raise FormFault(request.text("wave_merchants.confirm_missing"))
    return await ask_worker(request, _WAVE, NameWaveMerchants(form.account or None))


async def show_wave(request: StaffRequest) -> Response:
    able = list(aggregating(request.ctx.providers.accounts))
    view = WaveView(
        jobs=await jobs_view(request, _WAVE, "wave_merchants"),
        accounts=[("", request.text("wave_merchants.all")), *((name, name) for name in able)],
        able=able,
    )
    return request.page("admin/operations/wave_merchants.html", view)
