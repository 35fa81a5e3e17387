"""What the hosted pages cost a customer on a slow network: bytes on the wire and time to first paint, in Chromium.

    python -m bench.pages_3g [--chromium /usr/bin/chromium] [--runs 5]

Networks are those of Chromium's developer tools, and a 2G one; the processor is slowed down six times.
`style apart` serves the same page with its stylesheet as a second file, to show what carrying it inside saves.
"""

import argparse
import asyncio
import gzip
import re
import statistics
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import brotli
from cryptography.fernet import Fernet
from playwright.async_api import Browser, Page, async_playwright
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guichet import bootstrap, settings
from guichet.application import application
from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.checkout.checkout_fixture import CheckoutFixture, open_checkout
from tests.service_fixture import serving


@dataclass(frozen=True)
class Network:
    """`latency` in milliseconds a request, rates in bytes a second."""

    name: str
    latency: float
    down: float
    up: float


NETWORKS: Final = (
    Network("no throttling", 0, -1, -1),
    Network("fast 3G", 562.5, 1.6e6 / 8 * 0.9, 750e3 / 8 * 0.9),
    Network("slow 3G", 2000, 500e3 / 8 * 0.8, 500e3 / 8 * 0.8),
    Network("2G", 1600, 50e3 / 8, 25e3 / 8),
)
PROCESSOR: Final = 6


@dataclass(frozen=True)
class Visit:
    """Milliseconds and bytes; `requests` without the page's own."""

    first_byte: float
    first_paint: float
    bytes: int
    requests: int


async def visit(browser: Browser, url: str, network: Network) -> Visit:
    """One cold visit: nothing cached, a new connection."""
    context = await browser.new_context(viewport={"width": 360, "height": 640}, locale="fr-BJ")
    page = await context.new_page()
    session = await context.new_cdp_session(page)
    received: list[int] = []
    await session.send("Network.enable")
    await session.send("Network.clearBrowserCache")
    await session.send("Emulation.setCPUThrottlingRate", {"rate": PROCESSOR})
    conditions = {"offline": False, "latency": network.latency}
    rates = {"downloadThroughput": network.down, "uploadThroughput": network.up}
    await session.send("Network.emulateNetworkConditions", {**conditions, **rates})
    session.on("Network.loadingFinished", lambda event: received.append(round(event["encodedDataLength"])))
    await page.goto(url, timeout=60_000)
    times = await _times(page)
    await context.close()
    return Visit(times["byte"], times["paint"], sum(received), len(received) - 1)


async def _times(page: Page) -> dict[str, Any]:
    script = """() => new Promise(done => {
        const tell = () => {
            const paint = performance.getEntriesByName("first-contentful-paint")[0];
            if (!paint) return setTimeout(tell, 50);
            done({byte: performance.getEntriesByType("navigation")[0].responseStart, paint: paint.startTime});
        };
        tell();
    })"""
    times: dict[str, Any] = await page.evaluate(script)
    return times


class StyleApart:
    """The application with the stylesheet of its pages moved into a file of its own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._css = b""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].endswith("/apart.css"):
            await _answer(send, 200, b"text/css", brotli.compress(self._css), b"max-age=31536000, immutable")
            return
        parts: list[Message] = []

        async def keep(message: Message) -> None:
            parts.append(message)

        await self._app(scope, receive, keep)
        body = brotli.decompress(b"".join(part.get("body", b"") for part in parts[1:]))
        found = re.search(rb"<style>(.*?)</style>", body, re.DOTALL)
        assert found is not None
        self._css = found[1]
        body = body.replace(found[0], b'<link rel=stylesheet href="/pay/assets/apart.css">')
        await _answer(
            send, parts[0]["status"], b"text/html; charset=utf-8", brotli.compress(body, quality=5), b"no-store"
        )


async def _answer(send: Send, status: int, kind: bytes, body: bytes, cache: bytes) -> None:
    headers = [
        (b"content-type", kind),
        (b"content-encoding", b"br"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", cache),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def shop_with_pages() -> AsyncIterator[tuple[CheckoutFixture, dict[str, str]]]:
    """A shop, and the address of each page to measure."""
    with tempfile.TemporaryDirectory() as home:
        environ = {
            "GUICHET_HOME": home,
            "GUICHET_RATE_LIMIT": "0",
            "GUICHET_PAGE_RATE_LIMIT": "0",
            "GUICHET_SECRET_KEYS": Fernet.generate_key().decode(),
        }
        chosen = replace(settings.load(environ), home=Path(home))
        await bootstrap.ensure_schema(chosen, create=True)
        async with open_checkout(chosen) as checkout:
            link = await checkout.link(5000, "Commande 42 : trois pagnes wax")
            waiting = await checkout.waiting(link)
            receipt = await checkout.waiting(link)
            checkout.operator.approve(checkout.operator.last.payment.reference)
            checkout.pass_time(6)
            await checkout.get(receipt)
            pages = {"link": link, "waiting": waiting, "receipt": receipt, "poster": link + "/qr"}
            pages |= {"checkout": await checkout.card(), "unknown": "/pay/x/y"}
            yield checkout, pages


async def sizes(checkout: CheckoutFixture, pages: dict[str, str]) -> None:
    print(f"{'page':10} {'plain':>7} {'gzip':>6} {'brotli':>6}  bytes of HTML with its style; headers in brackets")
    for name, path in pages.items():
        plain = await checkout.get(path, Accept_Encoding="identity")
        small = await checkout.get(path, Accept_Encoding="br")
        zipped = await checkout.get(path, Accept_Encoding="gzip")
        head = sum(len(header) + len(value) + 4 for header, value in small.headers.items())
        print(f"{name:10} {plain.wire_size:7} {zipped.wire_size:6} {small.wire_size:6}  [{head}]")
    script = (Path(bootstrap.__file__).parent / "checkout/static/pages.js").read_bytes()
    print(f"{'pages.js':10} {len(script):7} {len(gzip.compress(script)):6} {len(brotli.compress(script)):6}")


async def paints(browser: Browser, url: str, what: str, runs: int) -> None:
    for network in NETWORKS:
        visits = [await visit(browser, url, network) for _ in range(runs)]
        paint = statistics.median(one.first_paint for one in visits)
        byte = statistics.median(one.first_byte for one in visits)
        spread = f"{min(one.first_paint for one in visits):.0f}–{max(one.first_paint for one in visits):.0f}"
        one = visits[0]
        print(f"{what:24} {network.name:14} {byte:7.0f} {paint:7.0f}  {spread:>11} {one.bytes:6} {one.requests:4}")


async def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--chromium", default=CHROMIUM)
    arguments.add_argument("--runs", type=int, default=5)
    chosen = arguments.parse_args()
    async with shop_with_pages() as (checkout, pages), async_playwright() as playwright:
        await sizes(checkout, pages)
        browser = await playwright.chromium.launch(executable_path=chosen.chromium, args=list(ARGUMENTS))
        print(f"\n{'page':24} {'network':14} {'byte ms':>7} {'FCP ms':>7}  {'range':>11} {'bytes':>6} more requests")
        for name in ("link", "waiting", "receipt"):
            await paints(browser, checkout.url + pages[name], name, chosen.runs)
        apart = StyleApart(application(checkout.service, None))
        async with serving(apart) as url:
            await paints(browser, url + pages["link"], "link, style apart", chosen.runs)
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
