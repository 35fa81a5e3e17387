"""A customer at a browser: opens pages, keeps screenshots if asked to, and notices what a page should never do."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from playwright.async_api import Browser, BrowserContext, CDPSession, ConsoleMessage, Page, Request

from tests.browser import axe
from tests.browser.conftest import SHOTS

PHONE: Final = {"width": 360, "height": 640}
DESKTOP: Final = {"width": 1280, "height": 800}
_UNFOLD: Final = "document.querySelectorAll('details').forEach(d => { d.removeAttribute('name'); d.open = true })"
#: An open menu lies over the page.
_FOLD_MENUS: Final = "document.querySelectorAll('.dock details, .drop').forEach(d => { d.open = false })"
_TAB: Final = [
    {"type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9} for kind in ("rawKeyDown", "keyUp")
]
_TOO_WIDE: Final = """[...document.querySelectorAll("section.card")]
  .filter(card => card.scrollWidth > card.clientWidth + 1).map(card => card.innerText.slice(0, 80))"""
#: `wanted`: what has not had the focus yet; of a group of radio buttons it is enough that one has.
_WATCH_FOCUS: Final = """() => {
  const controls = "a[href], button, input, select, textarea, summary";
  const usable = each => !each.disabled && each.type !== "hidden" && !each.closest("[aria-hidden=true]")
    && each.checkVisibility({ visibilityProperty: true });
  window.wanted = new Set([...document.querySelectorAll(controls)].filter(usable));
  const group = each => each.type === "radio" ? `${each.form?.action} ${each.name}` : each;
  document.addEventListener("focusin", event => {
    for (const each of window.wanted) if (group(each) === group(event.target)) window.wanted.delete(each);
  });
  document.activeElement.blur();
}"""


@dataclass
class Customer:
    """`complaints`: console errors (also of blocked scripts and styles); `requested`: the addresses of all requests."""

    page: Page
    context: BrowserContext
    base: str
    name: str
    scripts: bool
    complaints: list[str] = field(default_factory=list)
    requested: list[str] = field(default_factory=list)
    _keyboard: CDPSession | None = None

    async def open(self, path: str) -> int:
        response = await self.page.goto(self.base + path)
        assert response is not None
        return response.status

    async def shoot(self, step: str) -> None:
        if not os.environ.get("GUICHET_SCREENSHOTS"):
            return
        SHOTS.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=SHOTS / f"{self.name}-{step}.png", full_page=True)

    async def choose(self, country: str, operator: str) -> Any:
        """Opens a country and an operator; the operator's form."""
        group = self.page.locator("details.group").filter(has=self.page.get_by_text(country, exact=True))
        if await group.get_attribute("open") is None:
            await group.locator("> summary").click()
        mode = group.locator("details.mode").filter(has=self.page.get_by_text(operator, exact=True)).first
        if await mode.get_attribute("open") is None:
            await mode.locator("> summary").click()
        return mode

    async def pay(self, country: str, operator: str, number: str) -> None:
        mode = await self.choose(country, operator)
        await mode.get_by_label(f"Votre numéro {operator}").fill(number)
        await mode.get_by_role("button").click()

    async def go_to(self, section: str) -> None:
        """By the menu of a telephone, in which most sections are behind "Plus"."""
        await self.page.locator(".dock summary").click()
        await self.page.locator(".sheet").get_by_role("link", name=section).click()

    async def sign_out(self) -> None:
        await self.page.locator(".top details.drop summary").click()
        await self.page.get_by_role("button", name="Se déconnecter").click()

    async def title(self) -> str:
        return await self.page.locator("h1").inner_text()

    async def fits(self) -> None:
        """Nothing sticks out to the right, of the page or of a card."""
        width = await self.page.evaluate("document.documentElement.scrollWidth")
        assert self.page.viewport_size is not None
        assert width <= self.page.viewport_size["width"]
        too_wide = await self.page.evaluate(_TOO_WIDE)
        assert not too_wide, (self.page.url, too_wide)

    async def seen(self, step: str, path: str | None = None, *, unfolded: bool = True) -> None:
        """The page is accessible and whole: in light by every rule, in dark by those of the colours, and as wide as a
        desktop by those of the layout. What is folded is unfolded, unless another test does it with the same forms."""
        if path is not None:
            await self.open(path)
        await self.fits()
        await self.shoot(step)
        if not self.scripts:
            return  # axe-core needs scripts; what it would say without them is the same.
        if unfolded:
            await self.page.evaluate(_UNFOLD)
        await self.accessible()
        await self.page.evaluate(_FOLD_MENUS)
        await self.fits()
        await self.page.emulate_media(color_scheme="dark")
        await self.accessible(*axe.OF_COLOURS)
        await self.shoot(f"{step}-dark")
        await self.page.emulate_media(color_scheme="light")
        before = self.page.viewport_size
        await self.page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]
        await self.accessible(*axe.OF_LAYOUT)
        await self.fits()
        await self.shoot(f"{step}-desktop")
        await self.page.set_viewport_size(before or PHONE)  # type: ignore[arg-type]

    async def accessible(self, *rules: str, colours: bool = True) -> None:
        """axe-core: every rule it has for WCAG 2.2 AA and best practice, and the keyboard; or only these rules."""
        await axe.check(self.page, *rules, colours=colours)
        if not rules:
            await self.reachable_by_keyboard()

    async def reachable_by_keyboard(self) -> None:
        """The Tab key comes to everything that can be clicked or filled in, and goes on from there."""
        await self.page.evaluate(_WATCH_FOCUS)
        # Left open: to detach a session switches the page's virtual authenticators off.
        self._keyboard = keyboard = self._keyboard or await self.context.new_cdp_session(self.page)
        presses = _TAB * await self.page.evaluate("window.wanted.size")
        for _ in range(3):
            if await self.page.evaluate("window.wanted.size"):
                await asyncio.gather(*(keyboard.send("Input.dispatchKeyEvent", each) for each in presses))
        missed = await self.page.evaluate("[...window.wanted].map(each => each.outerHTML.slice(0, 120))")
        assert not missed, missed

    def nothing_strange(self) -> None:
        assert not self.complaints
        assert all(address.startswith((self.base, "data:")) for address in self.requested), self.requested


@asynccontextmanager
async def customer(
    browser: Browser,
    base: str,
    name: str,
    *,
    desktop: bool = False,
    scripts: bool = True,
    dark: bool = False,
    locale: str = "fr-FR",
    signs_in: bool = False,
) -> AsyncIterator[Customer]:
    """`signs_in`: somebody of the console; a customer leaves with the cookie of a payment at most."""
    context = await browser.new_context(
        viewport=DESKTOP if desktop else PHONE,  # type: ignore[arg-type]
        color_scheme="dark" if dark else "light",
        java_script_enabled=scripts,
        locale=locale,
        has_touch=not desktop,
        reduced_motion="reduce",  # Each frame of an animation would be drawn by the processor.
    )
    page = await context.new_page()
    page.set_default_timeout(10_000)
    someone = Customer(page, context, base, name, scripts)

    def said(message: ConsoleMessage) -> None:
        # A page with an error status is announced on the console by the browser itself.
        if message.type in ("error", "warning") and "the server responded with a status of" not in message.text:
            someone.complaints.append(message.text)

    def note_request(request: Request) -> None:
        someone.requested.append(request.url)

    page.on("console", said)
    page.on("pageerror", lambda error: someone.complaints.append(str(error)))
    page.on("request", note_request)
    try:
        yield someone
        assert signs_in or {each.get("name") for each in await context.cookies()} <= {"guichet-payment"}
    finally:
        await context.close()
