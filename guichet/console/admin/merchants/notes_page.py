"""What the staff wrote about a merchant."""

from functools import partial
from typing import ClassVar, Final

from starlette.responses import Response

from guichet.back_office.merchant_file import add_note
from guichet.console.admin.merchants.of_merchant import address, merchant_of, show_file
from guichet.console.admin.reads import record_read
from guichet.console.page_request import FormFault, StaffRequest
from guichet.merchants import notes
from guichet.merchants.notes import Note
from guichet.pages.fields import Fields, Lenient, RowId
from guichet.pages.lists import ABOVE_ALL, ById, ListPage, Pager
from guichet.pages.views import View

_MAX_NOTE: Final = 4000


class NoteForm(Fields):
    """`after`: the newest note that the form's reader had seen; without it, each form is another note."""

    text: str = ""
    after: Lenient[RowId] = None


class NotesView(View, frozen=True):
    notes: list[Note]
    pager: Pager
    newest: int
    most: ClassVar = _MAX_NOTE


async def show(request: StaffRequest) -> Response:
    merchant = await merchant_of(request)
    await record_read(request, "merchant.notes_read", "merchant", merchant.id, merchant.id)
    cursor = ById.read(request.query).cursor
    rows = await notes.page(request.db, merchant.id, cursor.before or ABOVE_ALL)
    page = ListPage.cut(rows, notes.PAGE, cursor)
    view = NotesView(
        notes=page.rows,
        pager=page.pager(lambda note: note.id, partial(address, request, merchant, "/notes")).older_only(),
        newest=await notes.newest(request.db, merchant.id),
    )
    return show_file(request, merchant, "notes", view)


async def change(request: StaffRequest) -> Response:
    form = await request.form(NoteForm)
    request.require("notes.add")
    merchant = await merchant_of(request)
    text = form.text.replace("\r\n", "\n").strip()
    if not text or len(text) > _MAX_NOTE or not text.replace("\n", "").isprintable():
        raise FormFault(request.text("admin_merchants.note_wrong"))
    seen = ABOVE_ALL if form.after is None else form.after
    await add_note(request.db, request.ctx.clock, merchant.id, text, request.actor, seen)
    return request.done(address(request, merchant, "/notes"), "noted")
