"""How `/openapi.json`, `/docs`, `/docs/guide` and `/docs/webhooks` are served, and what the pages show."""

import base64
import hashlib
import re
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin

import pytest
import pytest_asyncio

from guichet.api import markdown
from guichet.api.merchant_guide import CHAPTERS, PAGES
from guichet.settings import Settings
from tests.cli.conftest import ROOT
from tests.contract.openapi_document import schemas_of
from tests.service_fixture import ServiceFixture, open_service

#: All tests ask one service, which has made each page once: a page takes half a second of processor.
pytestmark = pytest.mark.asyncio(loop_scope="module")
GUIDES = {
    f"/docs/{page}": (ROOT / "docs" / file).read_text(encoding="utf-8")
    for page, file in (("guide", "guide-marchand.md"), ("webhooks", "guide-webhooks.md"))
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pages_service(
    base_settings: Settings, sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ServiceFixture]:
    path = shutil.copy(sqlite_template, tmp_path_factory.mktemp("pages"))
    settings = replace(base_settings, database_url=f"sqlite:///{path}", public_url="https://pay.example.com")
    async with open_service(settings) as opened:
        yield opened


async def test_they_are_public_and_cached_by_their_etag(pages_service: ServiceFixture) -> None:
    plain_only = {"Accept-Encoding": "identity"}
    for path in ("/openapi.json", "/docs", *GUIDES):
        plain = await pages_service.call("GET", path, headers=plain_only)
        known = {**plain_only, "If-None-Match": f'"other", W/{plain.headers["ETag"]}'}
        again = await pages_service.call("GET", path, headers=known)
        head = await pages_service.call("HEAD", path, headers=plain_only)

        assert (path, plain.status, again.status, head.status) == (path, 200, 304, 200)
        assert (again.raw, head.raw) == (b"", b"")
        assert again.headers["ETag"] == plain.headers["ETag"]
        assert head.headers["Content-Length"] == str(len(plain.raw))


async def test_both_are_compressed_if_the_client_accepts_it(pages_service: ServiceFixture) -> None:
    plain = await pages_service.call("GET", "/openapi.json", headers={"Accept-Encoding": "identity"})
    for accepted, encoding in (
        ("gzip, br", "br"),
        ("br, GZIP;q=0.5", "br"),
        ("gzip", "gzip"),
        ("br;q=0, GZIP;q=0.5", "gzip"),
        ("gzip;q=0", None),
        ("gzip; q=0.000, deflate", None),
        ("identity", None),
    ):
        answer = await pages_service.call("GET", "/openapi.json", headers={"Accept-Encoding": accepted})

        assert (accepted, answer.headers.get("Content-Encoding")) == (accepted, encoding)
        assert (answer.headers["ETag"] == plain.headers["ETag"]) == (encoding is None)
        assert int(answer.headers["Content-Length"]) < len(plain.raw) / 4 or encoding is None
        assert answer.headers["Vary"] == "Accept-Encoding"
        assert answer.raw == plain.raw


async def test_other_methods_are_refused_in_the_envelope(pages_service: ServiceFixture) -> None:
    answer = await pages_service.call("POST", "/docs")

    assert (answer.status, answer.error["code"], answer.headers["Allow"]) == (405, "method_not_allowed", "GET, HEAD")


class _Page(HTMLParser):
    """What a browser would look for in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.add(tag)
        self.ids += [given["id"] or ""] if "id" in given else []
        if tag == "a":
            self.links.append(given.get("href") or "")
        elif address := given.get("src") or given.get("href"):
            self.loaded.append(address)
        assert "style" not in given, "the policy allows no inline style"
        assert not any(name.startswith("on") for name in given)

    def handle_data(self, data: str) -> None:
        self.text += data


async def test_the_page_shows_every_operation_and_loads_nothing(pages_service: ServiceFixture) -> None:
    answer = await pages_service.call("GET", "/docs")
    document = (await pages_service.call("GET", "/openapi.json")).body
    page = _Page()
    page.feed(answer.raw.decode())

    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "script" not in page.tags
    assert all(address.startswith("data:") for address in page.loaded)
    assert len(page.ids) == len(set(page.ids))
    leading = {link for link in page.links if not link.startswith("#")}
    pages = {f"docs/{page}" for page in PAGES}
    assert {link for link in leading if link.partition("#")[0] not in pages} == {"openapi.json"}
    assert pages <= leading
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    assert {operation["operationId"] for operation in operations} <= set(page.ids)
    assert {hook["post"]["operationId"] for hook in document["webhooks"].values()} <= set(page.ids)
    for operation in operations:
        assert all(sample["source"] in page.text for sample in operation["x-codeSamples"])
    assert {name for name in schemas_of(document) if not name.endswith("Body") and name != "Customer"} <= set(page.ids)


async def _page(service: ServiceFixture, path: str) -> _Page:
    page = _Page()
    page.feed((await service.call("GET", path)).raw.decode())
    return page


@pytest.mark.parametrize("path", GUIDES)
async def test_a_guide_is_served_whole_and_loads_nothing(pages_service: ServiceFixture, path: str) -> None:
    page, text = await _page(pages_service, path), GUIDES[path]
    titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)

    assert all(address.startswith("data:") for address in page.loaded)
    assert len(page.ids) == len(set(page.ids))
    assert {markdown.anchor(title) for title in titles} <= set(page.ids)
    assert "button" not in page.tags, "the script makes them, and shows the search"
    assert b'<div role="search" hidden>' in (await pages_service.call("GET", path)).raw
    for code in re.findall(r"^```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        assert code.replace("http://127.0.0.1:8000", pages_service.ctx.settings.public_url) in page.text


async def test_a_guide_names_the_address_that_it_is_served_at(pages_service: ServiceFixture) -> None:
    pages = {path: (await _page(pages_service, path)).text for path in ("/docs", *GUIDES)}

    assert "export GUICHET=https://pay.example.com/v1" in pages["/docs/guide"]
    assert "https://pay.example.com/openapi.json" in pages["/docs/guide"]
    assert not any("127.0.0.1:8000" in text for text in pages.values())


async def test_the_pages_lead_to_each_other(pages_service: ServiceFixture) -> None:
    """Each address is seen from its page: `docs/guide` on `/docs`, `../docs` and `webhooks` on `/docs/guide`."""
    pages = {path: await _page(pages_service, path) for path in ("/docs", *GUIDES)}
    for path, page in pages.items():
        others = set()
        for link in page.links:
            address, _, anchor = urljoin(path, link).partition("#")
            assert address in (*pages, "/openapi.json"), link
            assert not anchor or anchor in pages[address].ids, link
            others.add(address)
        assert others >= set(pages) - {path}


async def test_the_reference_repeats_chapters_of_the_guide(pages_service: ServiceFixture) -> None:
    page = await _page(pages_service, "/docs")

    assert {f"#{markdown.anchor(title)}" for title in CHAPTERS} <= set(page.links)
    for suffix in ("py", "php", "mjs"):
        sample = ROOT / "docs" / "samples" / f"verify_signature.{suffix}"
        assert sample.read_text(encoding="utf-8") in page.text


@pytest.mark.parametrize("path", ["/docs", *GUIDES])
async def test_the_page_allows_what_is_in_it_and_nothing_else(pages_service: ServiceFixture, path: str) -> None:
    answer = await pages_service.call("GET", path)
    inline = re.findall(r"<(style|script)>(.*?)</\1>", answer.raw.decode(), re.DOTALL)
    allowed = {
        f"{kind}-src": f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for kind, text in inline
    }
    assert set(allowed) == ({"style-src"} if path == "/docs" else {"style-src", "script-src"})

    policy = dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        **allowed,
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
