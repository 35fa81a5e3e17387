"""Documents in a merchant's file: what kinds are taken, recognised by their content and by nothing else."""

from typing import Final, Literal, NewType, get_args

from guichet.clock import Instant
from guichet.domain.ids import MerchantId
from guichet.domain.records import Record

DocumentId = NewType("DocumentId", int)
DocumentType = Literal["application/pdf", "image/jpeg", "image/png"]
DOCUMENT_TYPES: Final[tuple[DocumentType, ...]] = get_args(DocumentType)
#: Bytes of one document, and documents of one merchant.
MAX_DOCUMENT: Final = 5 * 1024 * 1024
MAX_DOCUMENTS: Final = 20
_MAX_NAME: Final = 100
#: How the files of each type begin (ISO 32000-2, 7.5.2; ITU-T T.81, B.1.1.3; ISO/IEC 15948, 5.2).
_BEGINNINGS: Final[dict[DocumentType, bytes]] = {
    "application/pdf": b"%PDF-",
    "image/jpeg": b"\xff\xd8\xff",
    "image/png": b"\x89PNG\r\n\x1a\n",
}
_ENDINGS: Final[dict[DocumentType, str]] = {"application/pdf": "pdf", "image/jpeg": "jpg", "image/png": "png"}


class Document(Record, frozen=True):
    """A row of `merchant_documents`; the content is in `merchant_document_chunks`. `size` in bytes, `sha256` of the
    content in hexadecimal."""

    id: DocumentId
    merchant_id: MerchantId
    name: str
    media_type: DocumentType
    size: int
    sha256: str
    uploaded_by: str
    created_at: Instant


def document_type(content: bytes) -> DocumentType | None:
    """What the content is, whatever the file's name and the browser say; None for anything that is not taken."""
    return next((kind for kind, beginning in _BEGINNINGS.items() if content.startswith(beginning)), None)


def document_name(file_name: str, kind: DocumentType) -> str:
    """A name for lists and downloads: without a folder, without control characters, with the ending of its type."""
    last = file_name.replace("\\", "/").rpartition("/")[2]
    readable = " ".join("".join(char if char.isprintable() else " " for char in last).split())
    stem = readable.rpartition(".")[0] if "." in readable else readable
    return f"{stem[:_MAX_NAME].strip() or 'document'}.{_ENDINGS[kind]}"
