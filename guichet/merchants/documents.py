"""The documents in a merchant's file: SQL and row mapping. Every statement goes through a primary key or a unique
index; the content is encrypted by the caller."""

from typing import Final

from sqlalchemy import bindparam, delete, func, insert, select

from guichet.db.engine import Reader, Transaction, require
from guichet.db.sql_functions import equal, new_row, params, values_of
from guichet.db.tables import merchant_document_chunks, merchant_documents
from guichet.domain.documents import MAX_DOCUMENTS, Document, DocumentId
from guichet.domain.ids import MerchantId

_INSERT: Final = insert(merchant_documents).values(new_row(merchant_documents)).returning(*merchant_documents.c)
_INSERT_CHUNK: Final = insert(merchant_document_chunks).values(params("document_id", "number", "content"))
_THIS: Final = equal(merchant_documents, id="document", merchant_id="merchant")
_OF_MERCHANT: Final = merchant_documents.c.merchant_id == bindparam("merchant")
_ONE: Final = select(merchant_documents).where(*_THIS)
_OF: Final = (
    select(merchant_documents).where(_OF_MERCHANT).order_by(merchant_documents.c.id.desc()).limit(MAX_DOCUMENTS)
)
_COUNT: Final = select(func.count()).select_from(merchant_documents).where(_OF_MERCHANT)
_SAME: Final = select(merchant_documents.c.id).where(_OF_MERCHANT, merchant_documents.c.sha256 == bindparam("digest"))
_CHUNK: Final = select(merchant_document_chunks.c.content).where(
    *equal(merchant_document_chunks, document_id="document", number="number")
)
_DELETE_CHUNKS: Final = delete(merchant_document_chunks).where(
    merchant_document_chunks.c.document_id == bindparam("document")
)
_DELETE: Final = delete(merchant_documents).where(*_THIS).returning(*merchant_documents.c)


async def add(tx: Transaction, document: Document, chunks: list[str]) -> Document:
    """The document with its id, given by the database. `chunks`: the encrypted parts of the content, in order."""
    added = Document(*require(await tx.write(_INSERT, **values_of(merchant_documents, document))))
    for number, content in enumerate(chunks):
        await tx.write(_INSERT_CHUNK, document_id=added.id, number=number, content=content)
    return added


async def get(db: Reader, merchant_id: MerchantId, document_id: DocumentId) -> Document | None:
    """None also for the document of another merchant."""
    return await db.one_as(Document, _ONE, merchant=merchant_id, document=document_id)


async def list_of(db: Reader, merchant_id: MerchantId) -> list[Document]:
    """Newest first."""
    return [Document(*row) for row in await db.all(_OF, merchant=merchant_id)]


async def count(db: Reader, merchant_id: MerchantId) -> int:
    return int(require(await db.one(_COUNT, merchant=merchant_id))[0])


async def has_same(db: Reader, merchant_id: MerchantId, sha256: str) -> bool:
    return await db.one(_SAME, merchant=merchant_id, digest=sha256) is not None


async def chunk(db: Reader, document_id: DocumentId, number: int) -> str | None:
    """One encrypted part; None after the last one."""
    return await db.one_as(str, _CHUNK, document=document_id, number=number)


async def remove(tx: Transaction, merchant_id: MerchantId, document_id: DocumentId) -> Document | None:
    """Removes the document and its content; None if the merchant has no such document."""
    if await get(tx, merchant_id, document_id) is None:
        return None
    await tx.write(_DELETE_CHUNKS, document=document_id)
    return await tx.write_as(Document, _DELETE, document=document_id, merchant=merchant_id)
