"""Every page that a person reaches by links, from where they begin, in the order in which they find them."""

import re
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, urlsplit

from tests.console.conftest import ConsoleBrowser
from tests.frozen_pages.normalised import Placeholders, read

_IDS = re.compile(r"/[0-9a-f-]{36}|/\d+(?=/|$)|/\d{4}-\d\d-\d\d|(?<=/pay/)[\w/-]+|(?<=/checkout/)\w+")
#: Parameters of addresses whose values are alike.
_ANY = ("operator", "actor", "subject", "account")
_KEPT = ("text/html", "text/csv", "text/plain", "application/json")


def _shape(address: str) -> str:
    parts = urlsplit(address)
    query = sorted(
        name if name in _ANY or re.search(r"\d", value) else f"{name}={value}" for name, value in parse_qsl(parts.query)
    )
    return f"{_IDS.sub('/*', parts.path)}?{'&'.join(query)}"


def _without_menu(lines: list[str], menus: dict[tuple[str, ...], int]) -> list[str]:
    """A menu that was shown before is a number."""
    end = next((number for number, line in enumerate(lines) if line.startswith("[form post /console/sign-out")), 0)
    menu = tuple(lines[3:end])
    if menu not in menus:
        menus[menu] = len(menus) + 1
        return [*lines[:3], f"(menu {menus[menu]}:)", *lines[3:]]
    return [*lines[:3], f"(menu {menus[menu]})", *lines[end:]] if end else lines


async def crawl(
    browser: ConsoleBrowser, roots: Sequence[str], places: Placeholders, most: Mapping[str, int], of_each: int = 2
) -> list[str]:
    """The lines of the pages. `of_each`: how many pages of one shape are opened; `most` says otherwise for a shape."""
    language = parse_qsl(urlsplit(roots[0]).query)[-1]
    waiting, known, seen = deque(roots), set(roots), Counter[str]()
    lines: list[str] = []
    menus: dict[tuple[str, ...], int] = {}
    while waiting:
        address = waiting.popleft()
        shape = _shape(address)
        seen[shape] += 1
        if seen[shape] > most.get(shape, of_each):
            continue
        page = await browser.ask("GET", address)
        kind = page.headers.get("Content-Type", "").partition(";")[0]
        shown = [f"→ {page.headers['Location']}"] if page.status == 303 else []
        links = [page.headers["Location"]] if page.status == 303 else []
        if page.status != 303 and kind == "text/html":
            shown, links = read(page.text)
        elif page.status != 303 and kind in _KEPT:
            shown = page.text.splitlines()
        shown = _without_menu(shown, menus)
        lines += ["", f"=== {address} {page.status} {kind}", *shown]
        for link in links:
            target = link.removeprefix(browser.service.base_url).partition("#")[0]
            if target.startswith("?"):
                target = urlsplit(address).path + target
            inside = re.match(r"/(console|admin|pay|checkout)(/|\?|$)", target) and "/static/" not in target
            own = language in parse_qsl(urlsplit(target).query)
            if inside and own and target not in known:
                known.add(target)
                waiting.append(target)
    return places("\n".join(lines).strip()).splitlines()
