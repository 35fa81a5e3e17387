"""Documents in a merchant's file: what is taken, how it is kept, and who reads it."""

import hashlib
import re

import pytest
from sqlalchemy import select, update

from guichet.back_office.merchant_file import read_document
from guichet.db.tables import merchant_document_chunks
from guichet.domain.audit_log import Actor
from guichet.domain.documents import MAX_DOCUMENT, MAX_DOCUMENTS, DocumentId, document_name
from guichet.domain.errors import ServerError
from guichet.merchants import documents
from tests.console.admin.conftest import Staff, csrf_of, upload

PDF = b"%PDF-1.7\n" + b"secret " * 100_000
PNG = b"\x89PNG\r\n\x1a\n" + b"p" * 50


@pytest.mark.both_databases
async def test_a_document_is_encrypted_and_comes_back_as_an_attachment(staff: Staff) -> None:
    merchant = await staff.console.merchant()
    other = await staff.console.merchant()
    ctx = staff.console.service.ctx
    support = await staff.browser("support")
    path = f"/admin/merchants/{merchant.id}/documents"
    page = await upload(support, path, PDF, "dossier/Pièce n° 1.exe")
    assert page.path == path
    assert page.status == 200
    [document] = await documents.list_of(ctx.db, merchant.id)
    assert (document.name, document.size) == ("Pièce n° 1.pdf", len(PDF))
    assert document.sha256 == hashlib.sha256(PDF).hexdigest()
    stored = [row[0] for row in await ctx.db.all(select(merchant_document_chunks.c.content))]
    assert len(stored) == 3
    assert all("secret" not in each and each.startswith("gAAAA") for each in stored)

    address = f"{path}/{document.id}"
    cookies = "; ".join(f"{key}={value}" for key, value in support.cookies.items())
    got = await staff.console.service.call("GET", address, headers={"Cookie": cookies})
    assert (got.status, got.raw == PDF) == (200, True)
    assert got.headers["Content-Type"] == "application/pdf"
    assert got.headers["X-Content-Type-Options"] == "nosniff"
    assert got.headers["Cache-Control"] == "no-store"
    assert re.fullmatch(
        r"attachment; filename=\"document-\d+\.pdf\"; filename\*=UTF-8''Pi%C3%A8ce%20n%C2%B0%201\.pdf",
        got.headers["Content-Disposition"],
    )
    assert "sandbox" in got.headers["Content-Security-Policy"]
    assert (await support.get(f"/admin/merchants/{other.id}/documents/{document.id}")).status == 404
    assert (await support.get(f"{path}/{2**63}")).status == 404

    await support.get(f"{address}/remove")
    assert (await support.submit("reason", reason=" ")).status == 422
    page = await support.submit("reason", reason="Pièce périmée")
    assert page.path == path
    assert await documents.list_of(ctx.db, merchant.id) == []
    assert await ctx.db.all(select(merchant_document_chunks.c.content)) == []
    acts = {entry.action: entry for entry in await staff.acts() if entry.subject_type == "document"}
    assert acts.keys() == {"document.uploaded", "document.read", "document.removed"}
    assert acts["document.removed"].reason == "Pièce périmée"
    assert all(entry.actor == "support@guichet.example" and "Pièce " not in entry.after for entry in acts.values())
    assert (await support.get(address)).status == 404


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 422),
        (b"<html><script>alert(1)</script>", 422),
        (b" %PDF-1.7", 422),
        (b"GIF89a", 422),
        (b"%PDF-" + b"x" * (MAX_DOCUMENT - 5), 200),
        (b"%PDF-" + b"x" * (MAX_DOCUMENT - 4), 413),
        (b"%PDF-" + b"x" * 2 * MAX_DOCUMENT, 413),
    ],
    ids=["empty", "html", "pdf later", "gif", "largest", "one byte more", "twice as much"],
)
async def test_what_is_taken_is_decided_by_the_content(sqlite_staff: Staff, content: bytes, status: int) -> None:
    merchant = await sqlite_staff.console.merchant()
    support = await sqlite_staff.browser("support")
    page = await upload(support, f"/admin/merchants/{merchant.id}/documents", content)
    assert page.status == status
    kept = await documents.list_of(sqlite_staff.console.service.ctx.db, merchant.id)
    assert len(kept) == (status == 200)
    assert ('role="alert"' in page.text) is (status != 200)


async def test_a_file_has_a_bounded_number_of_documents_and_none_twice(staff: Staff) -> None:
    merchant = await staff.console.merchant()
    support = await staff.browser("support")
    path, csrf = f"/admin/merchants/{merchant.id}/documents", await csrf_of(support)
    for number in range(MAX_DOCUMENTS):
        page = await upload(support, path, PNG + b"%d" % number, "a.png", csrf)
        assert page.status == 200
    assert (await upload(support, path, PNG + b"0", "b.png", csrf)).status == 409
    page = await upload(support, path, PNG, "c.png", csrf)
    assert page.status == 409
    assert "20 documents" in page.text
    assert await documents.count(staff.console.service.ctx.db, merchant.id) == MAX_DOCUMENTS


async def test_a_form_of_somebody_else_or_no_form_is_refused(sqlite_staff: Staff) -> None:
    console, ctx = sqlite_staff.console, sqlite_staff.console.service.ctx
    merchant = await console.merchant()
    support, finance = await sqlite_staff.browser("support"), await sqlite_staff.browser("finance")
    path = f"/admin/merchants/{merchant.id}/documents"
    assert (await upload(support, path, PDF, csrf=await csrf_of(finance))).status == 403
    assert (await upload(finance, path, PDF)).status == 403
    assert (await upload(console.browser(), path, PDF, csrf="")).path.startswith("/console/sign-in")
    support.sends["Sec-Fetch-Site"] = "cross-site"
    assert (await upload(support, path, PDF)).status == 403
    support.sends["Sec-Fetch-Site"] = "same-origin"
    csrf = await csrf_of(support)

    async def send(body: bytes, kind: str = "multipart/form-data; boundary=b") -> int:
        cookies = "; ".join(f"{key}={value}" for key, value in support.cookies.items())
        headers = {**support.sends, "Cookie": cookies, "Content-Type": kind}
        return (await console.service.call("POST", path, body, headers=headers)).status

    def part(name: str, value: bytes, more: bytes = b"") -> bytes:
        return b'--b\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n%b\r\n' % (name.encode(), more, value)

    token, end = part("csrf", csrf.encode()), b"--b--\r\n"
    file = part("file", PDF, b'; filename="a.pdf"')
    assert await send(token + file + end) == 303
    assert await send(file + token + end) == 403, "the token comes before the file"
    assert await send(token + file) == 422, "the end is missing"
    assert await send(token + part("file", PNG, b'; filename="a"') + part("c", PNG, b'; filename="b"') + end) == 422
    assert await send(part("x", b"y") * 41 + token + file + end) == 422
    assert await send(part("x", b"y" * 20_000) + token + file + end) == 422
    assert await send(b"--b\r\nX: " + b"y" * 5_000 + b"\r\n\r\n" + end) == 422
    assert await send(b"--b\r\n\r\nx\r\n" + token + file + end) == 422
    assert await send(b"csrf=x", "application/x-www-form-urlencoded") == 422
    assert await send(b"", "multipart/form-data") == 422
    assert await send(b"", "multipart/form-data; boundary=" + "b" * 500) == 422
    assert len(await documents.list_of(ctx.db, merchant.id)) == 1


async def test_a_document_that_was_changed_in_the_database_is_not_given_out(sqlite_staff: Staff) -> None:
    ctx = sqlite_staff.console.service.ctx
    merchant = await sqlite_staff.console.merchant()
    support = await sqlite_staff.browser("support")
    await upload(support, f"/admin/merchants/{merchant.id}/documents", PDF)
    [document] = await documents.list_of(ctx.db, merchant.id)
    changed = ctx.vault.encrypt_bytes(b"something else")
    await ctx.db.write(
        update(merchant_document_chunks).values(content=changed).where(merchant_document_chunks.c.number == 1)
    )
    with pytest.raises(ServerError):
        await read_document(ctx, merchant.id, DocumentId(document.id), Actor("a", "b"))


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("passeport.PDF", "passeport.pdf"),
        ("../../etc/passwd", "passwd.pdf"),
        ("C:\\x\\scan", "scan.pdf"),
        ("a\r\nSet-Cookie: x.html", "a Set-Cookie: x.pdf"),
        ("", "document.pdf"),
        (".pdf", "document.pdf"),
        ("é" * 300 + ".pdf", "é" * 100 + ".pdf"),
    ],
)
def test_names_are_safe(typed: str, name: str) -> None:
    assert document_name(typed, "application/pdf") == name
