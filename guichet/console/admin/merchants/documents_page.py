"""The documents in a merchant's file: upload, download as an attachment, removal with a reason."""

from typing import Final

from starlette.responses import Response

from guichet.back_office.errors import DocumentRefused
from guichet.back_office.merchant_file import add_document, read_document, remove_document
from guichet.console.admin.merchants.of_merchant import address, merchant_of, show_file
from guichet.console.admin.reads import record_read
from guichet.console.downloads import attachment
from guichet.console.forms import ReasonForm
from guichet.console.page_request import FormFault, StaffRequest
from guichet.domain.documents import MAX_DOCUMENT, MAX_DOCUMENTS, DocumentId
from guichet.merchants import documents
from guichet.pages.fields import or_not_found
from guichet.pages.uploads import UploadTooLarge

_STATUS: Final = {"too_large": 413, "too_many": 409, "already_there": 409}


async def show(request: StaffRequest) -> Response:
    merchant = await merchant_of(request)
    await record_read(request, "merchant.documents_listed", "merchant", merchant.id, merchant.id)
    listed = await documents.list_of(request.db, merchant.id)
    most_mib = MAX_DOCUMENT // 1024 // 1024
    return show_file(request, merchant, "documents", documents=listed, most=MAX_DOCUMENTS, most_mib=most_mib)


async def upload(request: StaffRequest) -> Response:
    """The right is checked before anything of the body is read, the form's token before any of the file is kept."""
    request.require("documents.change")
    merchant, ctx = await merchant_of(request), request.ctx
    try:
        posted = await request.upload(MAX_DOCUMENT)
        await add_document(ctx, merchant.id, posted.name or "", bytes(posted.content), request.actor)
    except UploadTooLarge:
        raise FormFault(request.text("admin_documents.fault.too_large"), 413) from None
    except DocumentRefused as refused:
        status = _STATUS.get(refused.fault, 422)
        raise FormFault(request.text(f"admin_documents.fault.{refused.fault}"), status) from None
    return request.done(address(request, merchant, "/documents"), "document_added")


async def download(request: StaffRequest) -> Response:
    """Never shown in the page: a document is what somebody sent us."""
    merchant = await merchant_of(request)
    document, content = or_not_found(
        await read_document(request.ctx, merchant.id, _document_id(request), request.actor)
    )
    ending = document.name.rpartition(".")[2]
    return attachment(content, document.media_type, f"document-{document.id}.{ending}", document.name)


async def show_removal(request: StaffRequest) -> Response:
    request.require("documents.change")
    merchant = await merchant_of(request)
    document = or_not_found(await documents.get(request.db, merchant.id, _document_id(request)))
    return show_file(request, merchant, "document_removal", document=document)


async def remove(request: StaffRequest) -> Response:
    form = await request.form(ReasonForm)
    request.require("documents.change")
    merchant = await merchant_of(request)
    document = await documents.get(request.db, merchant.id, _document_id(request))
    if document is not None:
        if form.reason is None:
            raise FormFault(request.text("admin_documents.reason_missing"))
        await remove_document(request.db, request.ctx.clock, merchant.id, document.id, form.reason, request.actor)
    return request.done(address(request, merchant, "/documents"), "document_removed")


def _document_id(request: StaffRequest) -> DocumentId:
    return DocumentId(request.path["document"])
