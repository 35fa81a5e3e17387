"""`make pictures`: pictures of the console for the documents, in `docs/images/`.

They show the demonstration's second merchant, in Chromium (`apt install chromium-headless-shell`), in French: a large
screen and a telephone. Colours are reduced to a palette, so that a picture is small.
"""

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT: Final = Path(__file__).parents[1]
TARGET: Final = ROOT / "docs" / "images"
#: Bytes of one picture.
MOST: Final = 60_000
_SCREENS: Final = {"desktop": (1280, 800), "phone": (360, 640)}
_COLOURS: Final = 64
#: Pixels of a page above what is shown, and of the height of a picture.
_ABOVE: Final = 12
_TALLEST: Final = 1100
_NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser")


@dataclass(frozen=True)
class _Demo:
    """`site`: `http://localhost:port`. `owner`: the link that signs the owner in."""

    site: str
    owner: str


def main() -> None:
    chromium = next(filter(None, map(shutil.which, _NAMES)), None)
    if chromium is None:
        sys.exit("✗ Chromium is not installed: apt install chromium-headless-shell.")
    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home, _demo(Path(home)) as demo, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        _take(browser, demo)
        browser.close()


@contextmanager
def _demo(home: Path) -> Iterator[_Demo]:
    """A demonstration of its own, with an empty database."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GUICHET_")}
    command = [sys.executable, "-m", "guichet", "demo", "--port", "0"]
    with subprocess.Popen(
        command, cwd=ROOT, env={**environment, "GUICHET_HOME": str(home)}, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        printed = ""
        for line in process.stdout:
            printed += line
            if "Ctrl-C" in line:
                break
        found = re.search(r"^ +Sign in +((http://\S+)/console/sign-in/\S+)$", printed, re.MULTILINE)
        try:
            assert found is not None, printed
            yield _Demo(found[2], found[1])
        finally:
            process.send_signal(signal.SIGINT)


def _take(browser: Browser, demo: _Demo) -> None:
    signed_in = browser.new_context(locale="fr-FR")
    page = signed_in.new_page()
    page.goto(demo.owner)
    cookies = signed_in.cookies()
    links = page.locator("a[href^='/console/']").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    merchant = max(int(found[1]) for link in links if (found := re.match(r"/console/(\d+)/", link)))
    shop = f"{demo.site}/console/{merchant}/test"
    for name, (width, height) in _SCREENS.items():
        context = browser.new_context(
            viewport={"width": width, "height": height}, locale="fr-FR", has_touch=name == "phone"
        )
        context.add_cookies(cookies)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(shop)
        _save(page, f"overview-{name}", "main")
        _open_refunded(page, shop)
        _save(page, f"payment-{name}", "section:has(> ol.rows)")
        _open_sale(page, shop)
        _save(page, f"cash-desk-{name}", "main")
        context.close()


def _open_refunded(page: Page, shop: str) -> None:
    """The newest payment that was refunded: its story is the longest."""
    page.goto(f"{shop}/payments?status=refunded")
    page.locator(".data a[href*='/payments/']").first.click()
    page.locator("h1").wait_for()


def _open_sale(page: Page, shop: str) -> None:
    """A sale at the cash desk that waits for its customer."""
    page.goto(f"{shop}/cash-desk")
    page.locator("input[name=amount]").fill("12500")
    page.locator("input[name=description]").fill("Deux pagnes wax")
    page.get_by_role("button", name="Encaisser").click()
    page.locator(".qr svg").first.wait_for()


def _save(page: Page, name: str, part: str) -> None:
    """The page from the top of `part` (a CSS selector) on."""
    box = page.locator(part).first.bounding_box()
    assert box is not None
    top = max(0, box["y"] - _ABOVE)
    width = page.evaluate("document.documentElement.clientWidth")
    height = min(page.evaluate("document.documentElement.scrollHeight") - top, _TALLEST)
    shot = page.screenshot(full_page=True, clip={"x": 0, "y": top, "width": width, "height": height})
    picture = Image.open(io.BytesIO(shot)).convert("RGB")
    small = picture.quantize(_COLOURS, dither=Image.Dither.NONE)
    file = TARGET / f"{name}.png"
    small.save(file, optimize=True)
    size = file.stat().st_size
    print(f"  {file.relative_to(ROOT)}  {size:,} bytes")
    if size > MOST:
        sys.exit(f"✗ {file.name} is larger than {MOST:,} bytes.")


if __name__ == "__main__":
    main()
