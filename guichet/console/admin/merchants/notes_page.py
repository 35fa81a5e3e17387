"""What the staff wrote about a merchant."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts.rights import StaffMember
from guichet.back_office.merchant_file import add_note
from guichet.console.admin.fields import MAX_ID, before, row_number
from guichet.console.admin.merchants.of_merchant import address, merchant_of, show_file
from guichet.console.admin.reads import record_read
from guichet.console.sections import StaffPage
from guichet.console.visit import Visit
from guichet.domain.merchants import Merchant
from guichet.merchants import notes

_MAX_NOTE: Final = 4000


async def show(visit: Visit, acting: StaffMember) -> Response:
    return await _page(visit, acting, await merchant_of(visit))


async def change(visit: Visit, acting: StaffMember) -> Response:
    form = await visit.form()
    acting.require("notes.add", visit.console.ctx.clock.now())
    merchant = await merchant_of(visit)
    text = form.get("text", "").replace("\r\n", "\n").strip()
    if not text or len(text) > _MAX_NOTE or not text.replace("\n", "").isprintable():
        return await _page(visit, acting, merchant, 422, visit.text("admin_merchants.note_wrong"), text)
    await add_note(
        visit.console.ctx.db, visit.console.ctx.clock, merchant.id, text, acting.actor, _seen(form.get("after"))
    )
    return visit.redirect(address(visit, merchant, "/notes"))


def _seen(text: str | None) -> int:
    """The newest note that the form's reader had seen; without it, each form is another note."""
    return 0 if text == "0" else row_number(text) or MAX_ID


async def _page(
    visit: Visit, acting: StaffMember, merchant: Merchant, status: int = 200, fault: Any = None, typed: str = ""
) -> Response:
    await record_read(visit, acting, "merchant.notes_read", "merchant", merchant.id, merchant.id)
    found = await notes.page(visit.console.ctx.db, merchant.id, before(visit))
    shown = found[: notes.PAGE]
    older = address(visit, merchant, "/notes", before=str(shown[-1].id)) if len(found) > notes.PAGE else None
    view = {"notes": shown, "older": older, "typed": typed, "most": _MAX_NOTE, "may_add": acting.may("notes.add")}
    newest = await notes.newest(visit.console.ctx.db, merchant.id)
    return show_file(visit, acting, merchant, "notes", status, fault=fault, newest=newest, **view)


PAGES: Final = (StaffPage("/merchants/{merchant:row}/notes", "merchants.view", show, change),)
