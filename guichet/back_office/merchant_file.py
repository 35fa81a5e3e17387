"""A merchant's file: notes, and documents that are encrypted at rest.

A document's content is encrypted and decrypted in a thread. 5 MiB take half a second on a busy machine with two
processors; SQLite holds the loop for 60 ms of it.
"""

import asyncio
import hashlib
from typing import Final

from guichet.audit_log import entries as audit_log
from guichet.back_office.errors import DocumentRefused
from guichet.clock import Clock
from guichet.context import AppContext
from guichet.db.engine import Database, Transaction
from guichet.domain.audit_log import Act, Actor, Facts
from guichet.domain.documents import MAX_DOCUMENT, MAX_DOCUMENTS, Document, DocumentId, document_name, document_type
from guichet.domain.errors import ServerError
from guichet.domain.ids import MerchantId
from guichet.merchants import documents, notes
from guichet.merchants import repository as merchants
from guichet.merchants.notes import Note

#: Bytes of one part.
_CHUNK: Final = 256 * 1024


async def add_note(db: Database, clock: Clock, merchant_id: MerchantId, text: str, actor: Actor, after: int) -> Note:
    """The audit log says that there is a note, not what is in it: a note can name people.

    `after`: the newest note that the author had seen. A form that is sent twice is one note; the notes of colleagues
    come between without harm.
    """
    now = clock.now()
    async with db.transaction() as tx:
        # Two forms at the same time wait for one another here.
        await merchants.lock(tx, merchant_id)
        same = await notes.same_since(tx, merchant_id, actor.name, text, after)
        if same is not None:
            return same
        note = await notes.add(tx, merchant_id, actor.name, text, now)
        act = Act(actor, "merchant.note_added", "merchant", str(merchant_id), merchant_id, after={"note": note.id})
        await audit_log.record(tx, act, now)
    return note


async def add_document(ctx: AppContext, merchant_id: MerchantId, name: str, content: bytes, actor: Actor) -> Document:
    """Stores a document under a safe form of the name it was sent with. Raises DocumentRefused."""
    if not content:
        raise DocumentRefused("empty")
    if len(content) > MAX_DOCUMENT:
        raise DocumentRefused("too_large")
    kind = document_type(content)
    if kind is None:
        raise DocumentRefused("wrong_type")
    digest, chunks = await asyncio.to_thread(_encrypted, ctx, content)
    name, now = document_name(name, kind), ctx.clock.now()
    new = Document(DocumentId(0), merchant_id, name, kind, len(content), digest, actor.name, now)
    async with ctx.db.transaction() as tx:
        # Against other uploads at the same time: each would count too few.
        await merchants.lock(tx, merchant_id)
        if await documents.has_same(tx, merchant_id, digest):
            raise DocumentRefused("already_there")
        if await documents.count(tx, merchant_id) >= MAX_DOCUMENTS:
            raise DocumentRefused("too_many")
        added = await documents.add(tx, new, chunks)
        await _record(ctx.clock, tx, "document.uploaded", added, actor)
    return added


async def read_document(
    ctx: AppContext, merchant_id: MerchantId, document_id: DocumentId, actor: Actor
) -> tuple[Document, bytes] | None:
    """The document and its content; None if the merchant has no such document. Every reading is in the audit log.

    Raises UnreadableSecret, and ServerError when what is stored is not what was uploaded.
    """
    document = await documents.get(ctx.db, merchant_id, document_id)
    if document is None:
        return None
    parts: list[bytes] = []
    while (chunk := await documents.chunk(ctx.db, document_id, len(parts))) is not None:
        parts.append(await asyncio.to_thread(ctx.vault.decrypt_bytes, chunk))
    content = b"".join(parts)
    if hashlib.sha256(content).hexdigest() != document.sha256:
        raise ServerError
    async with ctx.db.transaction() as tx:
        await _record(ctx.clock, tx, "document.read", document, actor)
    return document, content


async def remove_document(
    db: Database, clock: Clock, merchant_id: MerchantId, document_id: DocumentId, reason: str, actor: Actor
) -> Document | None:
    """Removes the document with its content; the audit log keeps what it was and why. None if there is none."""
    async with db.transaction() as tx:
        removed = await documents.remove(tx, merchant_id, document_id)
        if removed is not None:
            await _record(clock, tx, "document.removed", removed, actor, reason)
    return removed


def _encrypted(ctx: AppContext, content: bytes) -> tuple[str, list[str]]:
    """The SHA-256 of the content and its encrypted parts."""
    parts = [content[at : at + _CHUNK] for at in range(0, len(content), _CHUNK)]
    return hashlib.sha256(content).hexdigest(), [ctx.vault.encrypt_bytes(part) for part in parts]


async def _record(
    clock: Clock, tx: Transaction, action: str, document: Document, actor: Actor, reason: str = ""
) -> None:
    """Without the document's name: it can be a person's, and the log is kept for ever."""
    facts: Facts = {"media_type": document.media_type, "size": document.size, "sha256": document.sha256}
    act = Act(actor, action, "document", str(document.id), document.merchant_id, reason, after=facts)
    await audit_log.record(tx, act, clock.now())
