"""Exports: what is asked for, how far the worker is, and the files."""

from collections.abc import AsyncIterator
from typing import ClassVar, Final

import msgspec
from pydantic import ValidationError
from starlette.responses import Response

from guichet.accounts import users
from guichet.console.balance.balance_page import currency_options, wallet_views
from guichet.console.downloads import file_name, streamed_attachment
from guichet.console.page_request import FormFault, MerchantRequest
from guichet.console.payments.list_filter import FILTERS, FilterFields
from guichet.domain.errors import NotFound
from guichet.domain.exports import (
    EXPORT_FORMATS,
    EXPORT_KINDS,
    MOST_DIRECT_ROWS,
    MOST_PREPARED,
    Export,
    ExportFormat,
    ExportKind,
    ListFilter,
)
from guichet.domain.money import Currency
from guichet.exports import files, repository
from guichet.exports.columns import KIND_NAMES
from guichet.exports.repository import ExportGone, TooManyExports
from guichet.exports.requests import ExportRequest, record_download, request_export
from guichet.merchants.vault import UnreadableSecret
from guichet.pages.days import Period, PeriodFields, this_month, today
from guichet.pages.fields import Lenient
from guichet.pages.formatting import country_name
from guichet.pages.i18n import FRENCH
from guichet.pages.views import View
from guichet.printable import printable

_MEDIA_TYPES: Final = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


class ExportForm(PeriodFields, FilterFields):
    kind: Lenient[ExportKind] = None
    format: Lenient[ExportFormat] = None
    currency: Lenient[Currency] = None


class ExportRow(View, frozen=True):
    """`href`: of the file, None while there is none for this reader."""

    export: Export
    first: str
    last: str
    who: str | None
    status: str
    href: str | None


class ExportsView(View, frozen=True):
    """`kinds`, `formats` and `currencies`: pairs of a value and its text, to choose from. `narrowed`: what the list was
    narrowed to whose export is asked for, and `filters` its fields."""

    kinds: list[tuple[str, str]]
    formats: list[tuple[str, str]]
    currencies: list[tuple[str, str]]
    currency: Currency
    period: Period
    filters: dict[str, str]
    narrowed: list[str]
    rows: list[ExportRow]
    working: bool
    most_rows: ClassVar = f"{MOST_DIRECT_ROWS:,}".replace(",", "\u202f")
    most: ClassVar = MOST_PREPARED


async def show(request: MerchantRequest) -> Response:
    form_values = request.form_values if request.fault else request.query
    try:
        form = ExportForm.read(form_values)
    except ValidationError:
        raise NotFound from None
    filters = {name: form_values.get(name, "") for name in FILTERS}
    team = {user.id: user.name for _, user in await users.team(request.db, request.merchant.id)}
    exports = await repository.latest(request.db, *request.scope)
    currency = form.currency or request.merchant.currency
    view = ExportsView(
        kinds=[(kind, request.text(f"exports.kind.{kind}")) for kind in EXPORT_KINDS],
        formats=[(name, request.text(f"exports.format.{name}")) for name in EXPORT_FORMATS],
        currencies=currency_options(await wallet_views(request), currency),
        currency=currency,
        period=_period(request, form),
        filters=filters,
        narrowed=await _narrowed(request, form.list_filter),
        rows=[_row(request, export, team.get(export.user_id)) for export in exports],
        working=any(export.status == "pending" for export in exports),
    )
    return request.page("balance/exports.html", view)


async def _narrowed(request: MerchantRequest, list_filter: ListFilter) -> list[str]:
    """What the list is narrowed to, in words."""
    modes = await request.ctx.catalogues.of(request.merchant.id)
    country = next((mode.country for mode in modes.modes if mode.country_code == list_filter.country), None)
    bounds = (("exports.least", list_filter.least), ("exports.most", list_filter.most))
    return [
        *([request.text(f"payments.status.{list_filter.status}")] if list_filter.status else []),
        *([printable(modes.name_of(list_filter.operator))] if list_filter.operator else []),
        *([country_name(country, list_filter.country, request.language)] if country and list_filter.country else []),
        *(
            request.text(key, amount=request.amount(amount, request.merchant.currency))
            for key, amount in bounds
            if amount
        ),
    ]


def _period(request: MerchantRequest, form: ExportForm) -> Period:
    """This month so far unless days were typed."""
    return form.period(request.time_zone, this_month(request.now(), request.time_zone))


def _row(request: MerchantRequest, export: Export, name: str | None) -> ExportRow:
    usable = export.can_be_downloaded(request.now())
    gone = export.status in ("direct", "ready") and not usable
    return ExportRow(
        export=export,
        first=request.day(today(export.since, request.time_zone)),
        last=request.day(today(export.until, request.time_zone)),
        who=name,
        status="expired" if gone else export.status,
        href=_file_href(request, export) if usable and export.user_id == request.person.id else None,
    )


async def ask(request: MerchantRequest) -> Response:
    """Asks for an export; a short one is downloaded at once."""
    form = await request.form(ExportForm)
    request.require("exports.download")
    now, period = request.now(), _period(request, form)
    if form.kind is None or form.format is None or period.fault or period.since > now:
        raise FormFault(request.text(f"balance.fault.{period.fault or 'form'}"))
    order = ExportRequest(
        merchant_id=request.merchant.id,
        env=request.env,
        user_id=request.person.id,
        kind=form.kind,
        format=form.format,
        currency=form.currency or request.merchant.currency if form.kind == "movements" else None,
        language="fr" if request.language == FRENCH else "en",
        time_zone=str(request.time_zone),
        since=period.since,
        until=min(period.until, now),
        filters=_filters(form),
    )
    try:
        export = await request_export(request.ctx, order, request.actor)
    except TooManyExports:
        raise FormFault(request.text("exports.too_many", most=MOST_PREPARED), 409) from None
    if export.status == "pending":
        return request.done(request.merchant_url("/exports"), "export_asked")
    return request.redirect(_file_href(request, export))


def _filters(form: ExportForm) -> str | None:
    """What the payments are narrowed to; other kinds have all rows of their period."""
    filters = form.list_filter
    return msgspec.json.encode(filters).decode() if form.kind == "payments" and filters != ListFilter() else None


async def download(request: MerchantRequest) -> Response:
    """The file, for the person who asked for it."""
    ctx, number = request.ctx, request.path["number"]
    request.require("exports.download")
    export = await repository.find(ctx.db, *request.scope, number)
    if export is None or export.user_id != request.person.id:
        raise NotFound
    if not export.can_be_downloaded(ctx.clock.now()):
        return _gone(request, export)
    if export.status == "ready":
        content, size = files.stored(ctx.db, ctx.vault, export), export.size
    else:
        content, size = files.written(ctx, export, files.Progress()), None
    try:
        first = await anext(content)  # What is missing shows now, while the answer can still say so.
    except (ExportGone, UnreadableSecret):
        return _gone(request, export)
    await record_download(ctx.db, ctx.clock, export, request.actor)
    days = [today(instant, request.time_zone).isoformat() for instant in (export.since, export.until)]
    name = file_name(_kind(request, export), request.merchant.name, request.env, *days, suffix=export.format)
    return streamed_attachment(_with_first(first, content), _MEDIA_TYPES[export.format], name, size)


async def _with_first(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for content in rest:
        yield content


def _gone(request: MerchantRequest, export: Export) -> Response:
    name = export.status if export.status in ("pending", "failed") else "expired"
    status = 409 if name == "pending" else 410
    return request.page("balance/export_gone.html", status=status, name=name, exports=request.merchant_url("/exports"))


def _file_href(request: MerchantRequest, export: Export) -> str:
    return request.merchant_url(f"/exports/{export.id}/file")


def _kind(request: MerchantRequest, export: Export) -> str:
    return KIND_NAMES[export.kind][0 if request.language == FRENCH else 1]
