"""A customer at a browser: opens pages, keeps screenshots if asked to, and notices what a page should never do."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import (
    Browser,
    BrowserContext,
    CDPSession,
    ConsoleMessage,
    Error,
    Locator,
    Page,
    Request,
    expect,
)

from tests.browser import axe
from tests.browser.conftest import SHOTS
from tests.console.conftest import ConsoleBrowser
from tests.patience import PATIENCE

PHONE: Final = {"width": 360, "height": 640}
DESKTOP: Final = {"width": 1280, "height": 800}
_PATIENCE: Final = 1000 * PATIENCE
expect.set_options(timeout=_PATIENCE)
#: A page that looks again every few seconds does so ten times as often.
_SOONER: Final = """{ const timer = window.setTimeout;
window.setTimeout = (act, wait, ...given) => timer(act, wait < 2000 ? wait : wait / 10, ...given); }"""
_UNFOLD: Final = "document.querySelectorAll('details').forEach(d => { d.removeAttribute('name'); d.open = true })"
#: An open menu lies over the page.
#: And goes to the top: what the Tab key scrolled under a bar that stays at the window's edge is no fault of the layout.
_FOLD_MENUS: Final = (
    "document.querySelectorAll('.dock details, .drop').forEach(d => { d.open = false }); scrollTo(0, 0)"
)
_TAB: Final = [
    {"type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9} for kind in ("rawKeyDown", "keyUp")
]
#: How wide the page is, and the cards out of which something sticks.
_WIDTHS: Final = """[document.documentElement.scrollWidth, [...document.querySelectorAll("section.card")]
  .filter(card => card.scrollWidth > card.clientWidth + 1).map(card => card.innerText.slice(0, 80))]"""
_MISSED: Final = "[...window.wanted].map(each => each.outerHTML.slice(0, 120))"
#: `wanted`: what has not had the focus yet; of a group of radio buttons it is enough that one has. What is marked up,
#: up to the page, as something that the Tab key came to on an earlier page is not wanted again: the keys go from the
#: control before the first that is. The times that the key is pressed, and how what it should come to is marked up.
_WATCH_FOCUS: Final = """known => {
  const controls = "a[href], button, input, select, textarea, summary";
  const usable = each => !each.disabled && each.type !== "hidden" && !each.closest("[aria-hidden=true]")
    && each.checkVisibility({ visibilityProperty: true });
  const group = each => each.type === "radio" ? `${each.form?.action} ${each.name}` : each;
  const markup = each => !each ? "" : markup(each.parentElement) + ">" + each.tagName + "." + each.className
    + each.getAttributeNames().join() + each.getAttribute("tabindex") + (each.type || "");
  const all = [...document.querySelectorAll(controls)].filter(usable);
  const judged = new Set(known), fresh = all.filter(each => !judged.has(markup(each)));
  window.wanted = new Set(fresh);
  document.addEventListener("focusin", event => {
    for (const each of window.wanted) if (group(each) === group(event.target)) window.wanted.delete(each);
  });
  let from = all.indexOf(fresh[0]) - 1;
  while (from >= 0 && all[from].type === "radio") from--;
  document.activeElement.blur();
  all[from]?.focus();
  return [fresh.length && all.indexOf(fresh.at(-1)) - from, [...new Set(fresh.map(markup))]];
}"""
_reached: Final[set[str]] = set()
#: How the document is built, without its texts and numbers: addresses and what is typed are there or not, and rows
#: that are built alike stand for one.
_STRUCTURE: Final = """() => {
  const texts = /^(href|action|formaction|src|value|content|title|alt|aria-label|placeholder|datetime|d|data-.*)$/;
  const attribute = ({ name, value }) => name + (!texts.test(name) ? `=${value.replace(/\\d+/g, "0")}` : value && "=");
  const shape = node => {
    if (node.nodeType === Node.TEXT_NODE) return node.data.trim() ? "text" : "";
    if (node.nodeType !== Node.ELEMENT_NODE) return "";
    if (node.matches("style, script")) return node.outerHTML;
    const inside = [...node.childNodes].map(shape).filter(Boolean);
    const built = inside.filter((each, index) => each !== inside[index - 1]);
    return `<${node.tagName} ${[...node.attributes].map(attribute).sort().join(" ")}>${built.join("")}</>`;
  };
  return shape(document.documentElement);
}"""
_judged_structures: Final[set[str]] = set()


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

    async def follow(self, control: Locator, key: str = "") -> None:
        """Clicks, or presses a key, on what leads to another page, and waits until that one is whole. A mere click may
        return before, and what is asked or typed next then meets the page that is about to go."""
        await control.wait_for()  # On the page that has it, which may itself be awaited.
        async with self.page.expect_navigation():
            await (control.press(key) if key else control.click())

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
        await self.follow(mode.get_by_role("button"))

    async def go_to(self, section: str) -> None:
        """By the menu of a telephone, in which most sections are behind "Plus"."""
        await self.page.locator(".dock summary").click()
        await self.follow(self.page.locator(".sheet").get_by_role("link", name=section))

    async def sign_out(self) -> None:
        await self.page.locator(".top details.drop summary").click()
        await self.follow(self.page.get_by_role("button", name="Se déconnecter"))

    async def title(self) -> str:
        return await self.page.locator("h1").inner_text()

    async def signed_in(self, browser: ConsoleBrowser) -> None:
        """Goes on as somebody who signed in over HTTP: a tenth of what typing and clicking the same way costs, which
        the tests of the console itself do."""
        await self.context.add_cookies(
            [{"name": name, "value": value, "url": self.base} for name, value in browser.cookies.items()]
        )

    async def fits(self, before: str = "") -> None:
        """Nothing sticks out to the right, of the page or of a card, once the script `before` ran."""
        width, too_wide = await self.page.evaluate(f"{before}; {_WIDTHS}")
        assert self.page.viewport_size is not None
        assert width <= self.page.viewport_size["width"], (self.page.url, width)
        assert not too_wide, (self.page.url, too_wide)

    async def seen(self, step: str, path: str | None = None, *, unfolded: bool = True) -> None:
        """The page is accessible and whole: in light by every rule, in dark by those of the colours, and as wide as a
        desktop by those of the layout. What is folded is unfolded, unless another test does it with the same forms.
        A page that is built as one before, of which only texts are others, is only measured."""
        if path is not None:
            await self.open(path)
        await self.fits()
        await self.shoot(step)
        if not self.scripts:
            return  # axe-core needs scripts; what it would say without them is the same.
        structure = await self.page.evaluate(f"{_UNFOLD if unfolded else ''}; ({_STRUCTURE})()")
        known = structure in _judged_structures
        if not known:
            await self.accessible()
        await self.fits(_FOLD_MENUS)
        before = self.page.viewport_size
        if not known:
            await self.page.emulate_media(color_scheme="dark")
            await self.shoot(f"{step}-dark")
        await self.page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]
        if not known:
            await self.accessible(*axe.OF_COLOURS, *axe.OF_LAYOUT)
        await self.fits()
        await self.shoot(f"{step}-desktop")
        await self.page.set_viewport_size(before or PHONE)  # type: ignore[arg-type]
        if not known:
            await axe.check(self.page, *axe.OF_COLOURS, only_new=True)  # What only a telephone shows.
            await self.page.emulate_media(color_scheme="light")
            _judged_structures.add(structure)

    async def accessible(self, *rules: str, colours: bool = True) -> None:
        """axe-core: every rule it has for WCAG 2.2 AA and best practice, and the keyboard; or only these rules."""
        await axe.check(self.page, *rules, colours=colours)
        if not rules:
            await self.reachable_by_keyboard()

    async def reachable_by_keyboard(self) -> None:
        """The Tab key comes to everything that can be clicked or filled in, and goes on from there."""
        count, markup = await self.page.evaluate(_WATCH_FOCUS, list(_reached))
        if not count:
            return
        # Left open: to detach a session switches the page's virtual authenticators off.
        self._keyboard = keyboard = self._keyboard or await self.context.new_cdp_session(self.page)
        for _ in range(3):
            await asyncio.gather(*(keyboard.send("Input.dispatchKeyEvent", each) for each in _TAB * count))
            if not (missed := await self.page.evaluate(_MISSED)):
                break
        assert not missed, missed
        _reached.update(markup)

    async def leave(self) -> None:
        for page in self.context.pages:
            if page is not self.page:
                await page.close()
        if self._keyboard is not None:
            await self._keyboard.detach()
        await self.page.goto("about:blank")
        await self.context.clear_cookies()

    def nothing_strange(self) -> None:
        assert not self.complaints, self.complaints
        assert all(address.startswith((self.base, "data:")) for address in self.requested), self.requested


#: A browser's tab costs more to open than most pages, so whoever comes next takes one that somebody left, without the
#: cookies and at no address.
_left: Final[dict[tuple[object, ...], list[Page]]] = {}


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
    judged: bool = False,
    changes_browser: bool = False,
) -> AsyncIterator[Customer]:
    """`signs_in`: somebody of the console; a customer leaves with the cookie of a payment at most. `judged`: most pages
    are, so axe-core comes with each instead of being sent for. `changes_browser`: what cookies and address do not say
    (scripts of the test, devices, rights, no connection): nobody takes it over."""
    kind = (browser, desktop, scripts, dark, locale, judged)
    left = _left.setdefault(kind, [])
    if left and not changes_browser:
        page = left.pop()
    else:
        context = await browser.new_context(
            viewport=DESKTOP if desktop else PHONE,  # type: ignore[arg-type]
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
            locale=locale,
            has_touch=not desktop,
            reduced_motion="reduce",  # Each frame of an animation would be drawn by the processor.
        )
        # A page that is judged must not change meanwhile.
        await context.add_init_script(AXE_SCRIPT if judged else _SOONER)
        page = await context.new_page()
        page.set_default_timeout(_PATIENCE)
    someone = Customer(page, page.context, base, name, scripts)

    def said(message: ConsoleMessage) -> None:
        # A page with an error status is announced on the console by the browser itself.
        if message.type in ("error", "warning") and "the server responded with a status of" not in message.text:
            someone.complaints.append(message.text)

    def failed(error: Error) -> None:
        someone.complaints.append(str(error))

    def note_request(request: Request) -> None:
        someone.requested.append(request.url)

    page.on("console", said)
    page.on("pageerror", failed)
    page.on("request", note_request)
    passed = False
    try:
        yield someone
        assert signs_in or {each.get("name") for each in await page.context.cookies()} <= {"guichet-payment"}
        passed = True
    finally:
        if changes_browser or not passed:
            await page.context.close()
        else:
            page.remove_listener("console", said)
            page.remove_listener("pageerror", failed)
            page.remove_listener("request", note_request)
            await someone.leave()
            left.append(page)
