"""Exports: what is asked for, how far the worker is, and the files."""

from collections.abc import AsyncIterator
from datetime import date
from typing import Any, Final

from starlette.responses import Response

from guichet.accounts import users
from guichet.console.balance.balance_page import chosen_currency, currency_options, wallet_views
from guichet.console.balance.downloads import file_name, streamed_attachment
from guichet.console.balance.periods import Period, read_period, today
from guichet.console.page_request import MerchantRequest
from guichet.domain.errors import NotFound
from guichet.domain.exports import EXPORT_FORMATS, EXPORT_KINDS, MOST_DIRECT_ROWS, MOST_PREPARED, Export
from guichet.exports import files, repository
from guichet.exports.columns import KIND_NAMES
from guichet.exports.errors import ExportGone, TooManyExports
from guichet.exports.requests import Wanted, record_download, request_export
from guichet.merchants.vault import UnreadableSecret
from guichet.pages.i18n import FRENCH

_MEDIA_TYPES: Final = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


async def show(request: MerchantRequest) -> Response:
    return await _page(request, _period(request, {}))


async def ask(request: MerchantRequest) -> Response:
    """Asks for an export; a short one is downloaded at once."""
    form = await request.form()
    ctx = request.ctx
    now = ctx.clock.now()
    request.require("exports.download")
    period = _period(request, form)
    kind = next((each for each in EXPORT_KINDS if each == form.get("kind")), None)
    written_as = next((each for each in EXPORT_FORMATS if each == form.get("format")), None)
    if kind is None or written_as is None or period.fault or period.since > now:
        fault = request.text(f"balance.fault.{period.fault or 'form'}")
        return await _page(request, period, 422, fault, form)
    wanted = Wanted(
        merchant_id=request.merchant.id,
        env=request.env,
        user_id=request.person.id,
        kind=kind,
        format=written_as,
        currency=chosen_currency(request, form.get("currency", "")) if kind == "movements" else None,
        language="fr" if request.language == FRENCH else "en",
        time_zone=str(request.time_zone),
        since=period.since,
        until=min(period.until, now),
    )
    try:
        export = await request_export(ctx, wanted, request.actor)
    except TooManyExports:
        fault = request.text("exports.too_many", most=MOST_PREPARED)
        return await _page(request, period, 409, fault, form)
    return request.redirect(request.here("/exports") if export.status == "pending" else _file_href(request, export))


async def download(request: MerchantRequest) -> Response:
    """The file, for the person who asked for it."""
    ctx, number = request.ctx, request.path["number"]
    request.require("exports.download")
    export = await repository.find(ctx.db, request.merchant.id, request.env, number)
    if export is None or export.user_id != request.person.id:
        raise NotFound
    if not export.can_be_downloaded(ctx.clock.now()):
        return _gone(request, export)
    if export.status == "ready":
        content, size = files.stored(ctx.db, ctx.vault, export), export.size
    else:
        content, size = files.written(ctx.db, ctx.clock, export, files.Progress()), None
    try:
        first = await anext(content)  # What is missing shows now, while the answer can still say so.
    except (ExportGone, UnreadableSecret):
        return _gone(request, export)
    await record_download(ctx.db, ctx.clock, export, request.actor)
    days = [today(each, request.time_zone).isoformat() for each in (export.since, export.until)]
    name = file_name(_kind(request, export), request.merchant.name, request.env, *days, suffix=export.format)
    return streamed_attachment(_with_first(first, content), _MEDIA_TYPES[export.format], name, size)


async def _with_first(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for content in rest:
        yield content


def _gone(request: MerchantRequest, export: Export) -> Response:
    name = export.status if export.status in ("pending", "failed") else "expired"
    status = 409 if name == "pending" else 410
    return request.show("balance/export_gone.html", status, name=name, exports=request.here("/exports"))


def _period(request: MerchantRequest, form: dict[str, str]) -> Period:
    """This month so far unless days were typed."""
    day = today(request.now(), request.time_zone)
    offered: tuple[date, date] = (day.replace(day=1), day)
    return read_period(form.get("from", ""), form.get("to", ""), request.time_zone, offered)


async def _page(
    request: MerchantRequest,
    period: Period,
    status: int = 200,
    fault: Any = None,
    form: dict[str, str] | None = None,
) -> Response:
    ctx = request.ctx
    team = {user.id: user.name for _, user in await users.team(ctx.db, request.merchant.id)}
    found = await repository.latest(ctx.db, request.merchant.id, request.env)
    typed = form or {}
    shown = await wallet_views(request)
    currency = chosen_currency(request, typed.get("currency", ""))
    view: dict[str, Any] = {
        "kinds": [(kind, request.text(f"exports.kind.{kind}")) for kind in EXPORT_KINDS],
        "formats": [(each, request.text(f"exports.format.{each}")) for each in EXPORT_FORMATS],
        "currencies": currency_options(shown, currency),
        "currency": currency,
        "typed": typed,
        "period": period,
        "rows": [_row(request, each, team.get(each.user_id)) for each in found],
        "working": any(each.status == "pending" for each in found),
        "fault": fault,
        "limits": {"rows": f"{MOST_DIRECT_ROWS:,}".replace(",", "\u202f"), "most": MOST_PREPARED},
        "balance": request.here("/balance") if request.may("balance.view") else None,
    }
    return request.show("balance/exports.html", status, **view)


def _row(request: MerchantRequest, export: Export, name: str | None) -> dict[str, Any]:
    usable = export.can_be_downloaded(request.now())
    gone = export.status in ("direct", "ready") and not usable
    return {
        "kind": request.text(f"exports.kind.{export.kind}"),
        "format": request.text(f"exports.format.{export.format}"),
        "currency": export.currency,
        "first": request.day(today(export.since, request.time_zone)),
        "last": request.day(today(export.until, request.time_zone)),
        "who": name,
        "status": "expired" if gone else export.status,
        "progress": export.progress,
        "rows": export.row_count,
        "expires": request.date_time(export.expires_at),
        "href": _file_href(request, export) if usable and export.user_id == request.person.id else None,
    }


def _file_href(request: MerchantRequest, export: Export) -> str:
    return request.here(f"/exports/{export.id}/file")


def _kind(request: MerchantRequest, export: Export) -> str:
    return KIND_NAMES[export.kind][0 if request.language == FRENCH else 1]
