"""Exports: what is asked for, how far the worker is, and the files."""

from collections.abc import AsyncIterator
from datetime import date
from typing import Any, Final

from starlette.responses import Response

from guichet.accounts import users
from guichet.accounts.rights import Member
from guichet.console.balance.balance_page import chosen_currency, currency_options, wallet_views
from guichet.console.balance.downloads import file_name, streamed_attachment
from guichet.console.balance.periods import Period, read_period, today
from guichet.console.visit import Visit
from guichet.domain.errors import NotFound
from guichet.domain.exports import EXPORT_FORMATS, EXPORT_KINDS, MOST_DIRECT_ROWS, MOST_PREPARED, Export
from guichet.exports import files, repository
from guichet.exports.columns import KIND_NAMES
from guichet.exports.repository import ExportGone, TooManyExports
from guichet.exports.requests import Wanted, record_download, request_export
from guichet.merchants.vault import UnreadableSecret
from guichet.pages.i18n import FRENCH

_MEDIA_TYPES: Final = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


async def show(visit: Visit, acting: Member) -> Response:
    return await _page(visit, acting, _period(visit, {}))


async def ask(visit: Visit, acting: Member) -> Response:
    """Asks for an export; a short one is downloaded at once."""
    form = await visit.form()
    ctx = visit.console.ctx
    now = ctx.clock.now()
    acting.require("exports.download", now)
    period = _period(visit, form)
    kind = next((each for each in EXPORT_KINDS if each == form.get("kind")), None)
    written_as = next((each for each in EXPORT_FORMATS if each == form.get("format")), None)
    if kind is None or written_as is None or period.fault or period.since > now:
        fault = visit.text(f"balance.fault.{period.fault or 'form'}")
        return await _page(visit, acting, period, 422, fault, form)
    wanted = Wanted(
        merchant_id=acting.merchant.id,
        env=acting.env,
        user_id=acting.user.id,
        kind=kind,
        format=written_as,
        currency=chosen_currency(acting, form.get("currency", "")) if kind == "movements" else None,
        language="fr" if visit.language == FRENCH else "en",
        time_zone=str(visit.time_zone),
        since=period.since,
        until=min(period.until, now),
    )
    try:
        export = await request_export(ctx, wanted, acting.actor)
    except TooManyExports:
        fault = visit.text("exports.too_many", most=MOST_PREPARED)
        return await _page(visit, acting, period, 409, fault, form)
    return visit.redirect(visit.here("/exports") if export.status == "pending" else _file_href(visit, export))


async def download(visit: Visit, acting: Member) -> Response:
    """The file, for the person who asked for it."""
    ctx, number = visit.console.ctx, visit.request.path_params["number"]
    acting.require("exports.download", ctx.clock.now())
    export = await repository.find(ctx.db, acting.merchant.id, acting.env, number)
    if export is None or export.user_id != acting.user.id:
        raise NotFound
    if not export.can_be_downloaded(ctx.clock.now()):
        return _gone(visit, export)
    if export.status == "ready":
        content, size = files.stored(ctx.db, ctx.vault, export), export.size
    else:
        content, size = files.written(ctx.db, ctx.clock, export, files.Progress()), None
    try:
        first = await anext(content)  # What is missing shows now, while the answer can still say so.
    except (ExportGone, UnreadableSecret):
        return _gone(visit, export)
    await record_download(ctx.db, ctx.clock, export, acting.actor)
    days = [today(each, visit.time_zone).isoformat() for each in (export.since, export.until)]
    name = file_name(_kind(visit, export), acting.merchant.name, acting.env, *days, suffix=export.format)
    return streamed_attachment(_with_first(first, content), _MEDIA_TYPES[export.format], name, size)


async def _with_first(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for content in rest:
        yield content


def _gone(visit: Visit, export: Export) -> Response:
    name = export.status if export.status in ("pending", "failed") else "expired"
    status = 409 if name == "pending" else 410
    return visit.show("balance/export_gone.html", status, name=name, exports=visit.here("/exports"))


def _period(visit: Visit, form: dict[str, str]) -> Period:
    """This month so far unless days were typed."""
    day = today(visit.console.ctx.clock.now(), visit.time_zone)
    offered: tuple[date, date] = (day.replace(day=1), day)
    return read_period(form.get("from", ""), form.get("to", ""), visit.time_zone, offered)


async def _page(
    visit: Visit,
    acting: Member,
    period: Period,
    status: int = 200,
    fault: Any = None,
    form: dict[str, str] | None = None,
) -> Response:
    ctx = visit.console.ctx
    team = {user.id: user.name for _, user in await users.team(ctx.db, acting.merchant.id)}
    found = await repository.latest(ctx.db, acting.merchant.id, acting.env)
    typed = form or {}
    shown = await wallet_views(visit, acting)
    currency = chosen_currency(acting, typed.get("currency", ""))
    view: dict[str, Any] = {
        "kinds": [(kind, visit.text(f"exports.kind.{kind}")) for kind in EXPORT_KINDS],
        "formats": [(each, visit.text(f"exports.format.{each}")) for each in EXPORT_FORMATS],
        "currencies": currency_options(shown, currency),
        "currency": currency,
        "typed": typed,
        "period": period,
        "rows": [_row(visit, acting, each, team.get(each.user_id)) for each in found],
        "working": any(each.status == "pending" for each in found),
        "fault": fault,
        "limits": {"rows": f"{MOST_DIRECT_ROWS:,}".replace(",", "\u202f"), "most": MOST_PREPARED},
        "balance": visit.here("/balance") if acting.may("balance.view") else None,
    }
    return visit.show("balance/exports.html", status, **view)


def _row(visit: Visit, acting: Member, export: Export, name: str | None) -> dict[str, Any]:
    usable = export.can_be_downloaded(visit.console.ctx.clock.now())
    gone = export.status in ("direct", "ready") and not usable
    return {
        "kind": visit.text(f"exports.kind.{export.kind}"),
        "format": visit.text(f"exports.format.{export.format}"),
        "currency": export.currency,
        "first": visit.day(today(export.since, visit.time_zone)),
        "last": visit.day(today(export.until, visit.time_zone)),
        "who": name,
        "status": "expired" if gone else export.status,
        "progress": export.progress,
        "rows": export.row_count,
        "expires": visit.date_time(export.expires_at),
        "href": _file_href(visit, export) if usable and export.user_id == acting.user.id else None,
    }


def _file_href(visit: Visit, export: Export) -> str:
    return visit.here(f"/exports/{export.id}/file")


def _kind(visit: Visit, export: Export) -> str:
    return KIND_NAMES[export.kind][0 if visit.language == FRENCH else 1]
