"""A real Chromium. Without it its tests are skipped, loudly; GUICHET_REQUIRE_BROWSER=1 fails them instead."""

import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from guichet.settings import Settings
from tests.checkout.checkout_fixture import CheckoutFixture, open_checkout
from tests.console.conftest import ConsoleFixture
from tests.ports import free_port
from tests.service_fixture import open_service

#: The headless shell is the same engine without a desktop browser around it, in three quarters of the time.
CHROMIUM: Final = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None
)
ARGUMENTS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--in-process-gpu",  # Nothing is drawn that a process of its own would pay off for.
    # Each origin of a test's own service would start a process, which compiles axe-core and what drives the page again.
    "--disable-site-isolation-trials",
    "--renderer-process-limit=1",
    # A page after another of the same address would get a frame of its own. Playwright's list, which this one replaces,
    # is about other things, but for the second.
    "--disable-features=RenderDocument,PaintHolding",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Each page compiles axe-core's functions anew and leaves before they pay off.
    "--js-flags=--no-maglev,--no-turbofan",
)
MISSING: Final = (
    "Chromium is not installed (apt-get install chromium-headless-shell): the hosted pages were NOT tested in a browser"
)
#: Kept for a person to look at, with GUICHET_SCREENSHOTS=1: they take a seventh of the time of these tests.
SHOTS: Final = Path(__file__).parents[2] / "screenshots"


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser() -> AsyncIterator[Browser]:
    if CHROMIUM is None:
        if os.environ.get("GUICHET_REQUIRE_BROWSER"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield launched
        await launched.close()


@pytest_asyncio.fixture(loop_scope="session")
async def console(sqlite_settings: Settings) -> AsyncIterator[ConsoleFixture]:
    """Under its public address, since links name it."""
    port = free_port()
    settings = replace(sqlite_settings, public_url=f"http://127.0.0.1:{port}")
    async with open_service(settings, port=port) as service:
        yield ConsoleFixture(service)


@pytest_asyncio.fixture(loop_scope="session")
async def checkout(sqlite_settings: Settings) -> AsyncIterator[CheckoutFixture]:
    async with open_checkout(sqlite_settings) as opened:
        yield opened


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if CHROMIUM is None:
        terminalreporter.write_line(f"!!! {MISSING} !!!", red=True, bold=True)
