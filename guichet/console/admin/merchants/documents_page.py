"""The documents in a merchant's file: upload, download as an attachment, removal with a reason."""

from typing import Any, Final
from urllib.parse import quote

from starlette.responses import Response

from guichet.accounts.rights import StaffMember
from guichet.back_office.errors import DocumentRefused
from guichet.back_office.merchant_file import add_document, read_document, remove_document
from guichet.console.admin.fields import reason_of
from guichet.console.admin.merchants.of_merchant import address, merchant_of, show_file
from guichet.console.admin.reads import record_read
from guichet.console.sections import StaffPage
from guichet.console.visit import Visit
from guichet.domain.documents import MAX_DOCUMENT, MAX_DOCUMENTS, Document, DocumentId
from guichet.domain.errors import NotFound
from guichet.domain.merchants import Merchant
from guichet.merchants import documents
from guichet.pages.page_request import HEADERS
from guichet.pages.uploads import UploadTooLarge

_STATUS: Final = {"too_large": 413, "too_many": 409, "already_there": 409}


async def show(visit: Visit, acting: StaffMember) -> Response:
    merchant = await merchant_of(visit)
    await record_read(visit, acting, "merchant.documents_listed", "merchant", merchant.id, merchant.id)
    return await _page(visit, acting, merchant)


async def upload(visit: Visit, acting: StaffMember) -> Response:
    """The right is checked before anything of the body is read, the form's token before any of the file is kept."""
    ctx = visit.console.ctx
    acting.require("documents.change", ctx.clock.now())
    merchant = await merchant_of(visit)
    try:
        posted = await visit.upload(MAX_DOCUMENT)
        await add_document(ctx, merchant.id, posted.name or "", bytes(posted.content), acting.actor)
    except UploadTooLarge:
        return await _page(visit, acting, merchant, 413, visit.text("admin_documents.fault.too_large"))
    except DocumentRefused as refused:
        fault = visit.text(f"admin_documents.fault.{refused.fault}")
        return await _page(visit, acting, merchant, _STATUS.get(refused.fault, 422), fault)
    return visit.redirect(address(visit, merchant, "/documents"))


async def download(visit: Visit, acting: StaffMember) -> Response:
    """Never shown in the page: a document is what somebody sent us."""
    merchant = await merchant_of(visit)
    found = await read_document(visit.console.ctx, merchant.id, _document_id(visit), acting.actor)
    if found is None:
        raise NotFound
    document, content = found
    ending = document.name.rpartition(".")[2]
    headers = {
        **HEADERS,
        # Its own name may be in any script; the ASCII one is for programs that do not know the other (RFC 6266).
        "Content-Disposition": f'attachment; filename="document-{document.id}.{ending}"; '
        f"filename*=UTF-8''{quote(document.name, safe='')}",
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    return Response(content, 200, headers, document.media_type)


async def ask_removal(visit: Visit, acting: StaffMember) -> Response:
    acting.require("documents.change", visit.console.ctx.clock.now())
    merchant = await merchant_of(visit)
    document = await documents.get(visit.console.ctx.db, merchant.id, _document_id(visit))
    if document is None:
        raise NotFound
    return _removal(visit, acting, merchant, document)


async def remove(visit: Visit, acting: StaffMember) -> Response:
    form = await visit.form()
    ctx = visit.console.ctx
    acting.require("documents.change", ctx.clock.now())
    merchant = await merchant_of(visit)
    document = await documents.get(ctx.db, merchant.id, _document_id(visit))
    reason = reason_of(form)
    if document is not None and reason is None:
        return _removal(visit, acting, merchant, document, 422, visit.text("admin_documents.reason_missing"))
    if document is not None and reason is not None:
        await remove_document(ctx.db, ctx.clock, merchant.id, document.id, reason, acting.actor)
    return visit.redirect(address(visit, merchant, "/documents"))


def _document_id(visit: Visit) -> DocumentId:
    return DocumentId(visit.request.path_params["document"])


def _removal(
    visit: Visit,
    acting: StaffMember,
    merchant: Merchant,
    document: Document,
    status: int = 200,
    fault: Any = None,
) -> Response:
    return show_file(visit, acting, merchant, "document_removal", status, document=document, fault=fault)


async def _page(
    visit: Visit, acting: StaffMember, merchant: Merchant, status: int = 200, fault: Any = None
) -> Response:
    view = {
        "documents": await documents.list_of(visit.console.ctx.db, merchant.id),
        "may_change": acting.may("documents.change"),
        "most": MAX_DOCUMENTS,
        "most_mib": MAX_DOCUMENT // 1024 // 1024,
    }
    return show_file(visit, acting, merchant, "documents", status, fault=fault, **view)


_FILE: Final = "/merchants/{merchant:row}/documents"
PAGES: Final = (
    StaffPage(_FILE, "documents.view", show, upload),
    StaffPage(f"{_FILE}/{{document:row}}", "documents.view", download),
    StaffPage(f"{_FILE}/{{document:row}}/remove", "documents.change", ask_removal, remove),
)
