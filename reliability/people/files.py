"""The files and the mails of the console: exports that can be read and are whole, mails that left under one id each."""

import csv
import io
import zipfile
from collections import Counter
from typing import Final

from sqlalchemy import func, select

from guichet.audit_log.entries import Entry
from guichet.db.engine import Database
from guichet.db.tables import exports, mails, payments, refunds
from guichet.domain.exports import Export
from reliability.comparison import Comparison
from reliability.people.journal import PeopleJournal
from reliability.people.mailbox import Mailbox

DOWNLOADED: Final = "export.downloaded"


async def compare_exports(
    found: Comparison, db: Database, journal: PeopleJournal, entries: list[Entry], files: dict[str, bytes]
) -> None:
    downloads = Counter(each.subject for each in entries if each.action == DOWNLOADED)
    for path, count in journal.downloads.items():
        if downloads[path.split("/")[-2]] < count:
            found.differs("the console: a download is not in the audit log", f"{path}: {count} downloads")
    table = {"payments": payments, "refunds": refunds}
    for export in [Export(*row) for row in await db.scan(select(exports))]:
        found.figures[f"exports {export.status}"] += 1
        if export.status in ("pending", "failed"):
            found.differs("the console: an export was not made", str(export))
        content = files.get(f"/console/{export.merchant_id}/{export.env}/exports/{export.id}/file")
        if content is None or export.kind == "movements":
            continue
        rows = table[export.kind].c
        mine = (rows.merchant_id == export.merchant_id, rows.env == export.env, rows.created_at <= export.until)
        [(expected,)] = await db.scan(select(func.count()).where(*mine, rows.created_at >= export.since))
        if (written := _row_count(content, export.format)) != expected:
            found.differs("the console: an export lacks rows", f"{export}: {written} instead of {expected}")
        found.figures["exports read"] += 1


def _row_count(content: bytes, written_as: str) -> int:
    """Without the line of the names of columns."""
    if written_as == "csv":
        return sum(1 for _ in csv.reader(io.StringIO(content.decode("utf-8-sig")))) - 1
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        sheets = [name for name in book.namelist() if name.startswith("xl/worksheets/")]
        return sum(book.read(name).count(b"<row") for name in sheets) - len(sheets)


async def compare_mails(found: Comparison, db: Database, mailbox: Mailbox) -> None:
    """Each mail left, under one id, and no other came."""
    queued: Counter[str] = Counter()
    for recipient, status in await db.scan(select(mails.c.recipient, mails.c.status)):
        queued[recipient] += 1
        found.figures[f"mails {status}"] += 1
        if status != "sent":
            found.differs("the console: a mail did not leave", f"{recipient}: {status}")
    for recipient in queued.keys() | mailbox.received.keys():
        came = mailbox.received.get(recipient, Counter())
        if len(came) != queued[recipient]:
            about = f"{recipient}: {queued[recipient]} queued, {dict(came)} came"
            found.differs("the console: mails came under other ids", about)
        found.figures["mails that came again under the same id"] += came.total() - len(came)
