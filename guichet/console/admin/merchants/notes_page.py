"""What the staff wrote about a merchant."""

from typing import Any, Final

from starlette.responses import Response

from guichet.back_office.merchant_file import add_note
from guichet.console.admin.fields import MAX_ID, before, row_number
from guichet.console.admin.merchants.of_merchant import address, merchant_of, show_file
from guichet.console.admin.reads import record_read
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.domain.merchants import Merchant
from guichet.merchants import notes

_MAX_NOTE: Final = 4000


async def show(request: StaffRequest) -> Response:
    return await _page(request, await merchant_of(request))


async def change(request: StaffRequest) -> Response:
    form = await request.form()
    request.require("notes.add")
    merchant = await merchant_of(request)
    text = form.get("text", "").replace("\r\n", "\n").strip()
    if not text or len(text) > _MAX_NOTE or not text.replace("\n", "").isprintable():
        return await _page(request, merchant, 422, request.text("admin_merchants.note_wrong"), text)
    await add_note(request.db, request.ctx.clock, merchant.id, text, request.actor, _seen(form.get("after")))
    return request.redirect(address(request, merchant, "/notes"))


def _seen(text: str | None) -> int:
    """The newest note that the form's reader had seen; without it, each form is another note."""
    return 0 if text == "0" else row_number(text) or MAX_ID


async def _page(
    request: StaffRequest, merchant: Merchant, status: int = 200, fault: Any = None, typed: str = ""
) -> Response:
    await record_read(request, "merchant.notes_read", "merchant", merchant.id, merchant.id)
    found = await notes.page(request.db, merchant.id, before(request))
    shown = found[: notes.PAGE]
    older = address(request, merchant, "/notes", before=str(shown[-1].id)) if len(found) > notes.PAGE else None
    view = {"notes": shown, "older": older, "typed": typed, "most": _MAX_NOTE, "may_add": request.may("notes.add")}
    newest = await notes.newest(request.db, merchant.id)
    return show_file(request, merchant, "notes", status, fault=fault, newest=newest, **view)


PAGES: Final = (StaffPage("/merchants/{merchant:row}/notes", "merchants.view", show, change),)
