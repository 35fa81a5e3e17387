"""The files, by name."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from guichet.settings import Settings
from tests.console.conftest import ConsoleBrowser
from tests.frozen_pages import acts, commands
from tests.frozen_pages.crawl import crawl
from tests.frozen_pages.hosted import hosted
from tests.frozen_pages.normalised import Placeholders, read
from tests.frozen_pages.world import World, open_world

FOLDER: Final = Path(__file__).parent / "files"
LANGUAGES: Final = ("fr", "en")
_MOST: Final = {
    "/console/*/live/payments/*?": 30,
    "/console/*/test/payments/*?": 8,
    "/admin/incidents/*?": 30,
    "/admin/payments/*?": 30,
    "/admin/approvals/*?": 9,
    "/admin/reconciliation/*?": 3,
}
#: Roles whose pages differ from an owner's by what is not there.
ROLES: Final = ("finance", "developer", "cashier", "reader")


async def record(settings: Settings) -> AsyncIterator[tuple[str, str]]:
    async with open_world(settings) as world:
        awa, zoe = await world.signed_in("awa@guichet.example"), await world.signed_in("zoe@guichet.example")
        base, shop = f"/console/{world.merchant.id}", f"/console/{world.shop.id}"
        owner = await world.signed_in("owner@kora.example")
        of_shop = await world.signed_in("shop@kora.example")
        await acts.of_owner(owner, base)
        jobs = await acts.of_staff(world, awa, zoe)
        for language in LANGUAGES:
            yield f"staff.{language}.txt", await _pages(awa, ["/admin", *jobs], language)
            roots = [f"{base}/test", f"{base}/live", "/console/security", "/console"]
            yield f"owner.{language}.txt", await _pages(owner, roots, language)
            yield f"month.{language}.txt", await _pages(of_shop, [f"{shop}/test"], language)
            yield f"hosted.{language}.txt", await hosted(world, language)
        for role in ROLES:
            browser = await world.signed_in(f"{role}@kora.example")
            yield f"{role}.fr.txt", await _pages(browser, [f"{base}/test", f"{base}/live"], "fr", {}, 1)
        yield "commands.txt", await _commands(world)
        for language in LANGUAGES:
            places = Placeholders()
            shown = await _sent(awa, acts.STAFF_FORMS, language) + await _sent(
                owner, [f"{base}/test{path}" for path in acts.OWNER_FORMS], language
            )
            yield f"forms.{language}.txt", places("\n".join(shown)) + "\n"


async def _pages(
    browser: ConsoleBrowser, roots: Sequence[str], language: str, most: Mapping[str, int] = _MOST, of_each: int = 3
) -> str:
    asked = {f"{shape.rstrip('?')}?lang={language}": number for shape, number in most.items()}
    lines = await crawl(
        browser,
        [f"{root}{'&' if '?' in root else '?'}lang={language}" for root in roots],
        Placeholders(),
        asked,
        of_each,
    )
    return "\n".join(lines) + "\n"


async def _sent(browser: ConsoleBrowser, paths: Sequence[str], language: str) -> list[str]:
    shown = []
    for path in paths:
        for title, page in await acts.sent_empty(browser, f"{path}?lang={language}"):
            shown += ["", f"=== {title} {page.status} {page.headers.get('Location', '')}"]
            lines = read(page.text)[0]
            end = next((at for at, line in enumerate(lines) if line.startswith("<h1")), 0)
            shown += lines[end:]
    return shown


async def _commands(world: World) -> str:
    settings = world.settings
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GUICHET_")}
    environ |= {
        "GUICHET_HOME": str(settings.home),
        "GUICHET_DATABASE_URL": settings.database_url,
        "GUICHET_SECRET_KEYS": ",".join(settings.secret_keys),
        "GUICHET_PUBLIC_URL": world.running.simulator_url,
        "GUICHET_RATE_LIMIT": "0",
        "COLUMNS": "200",
        "NO_COLOR": "1",
        "TERM": "dumb",
    }
    known = await world.references()
    text = await asyncio.to_thread(commands.record, environ, world.running.clock.now(), known)
    return Placeholders()(text.replace(str(settings.home), "{home}")) + "\n"
