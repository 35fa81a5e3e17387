"""The files, by name."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final

from guichet.settings import Settings
from tests.frozen_pages.crawl import crawl
from tests.frozen_pages.normalised import Placeholders
from tests.frozen_pages.world import World, open_world

FOLDER: Final = Path(__file__).parent / "files"
LANGUAGES: Final = ("fr", "en")
_MOST: Final = {
    "/console/*/live/payments/*?": 20,
    "/console/*/test/payments/*?": 10,
    "/admin/incidents/*?": 20,
    "/admin/payments/*?": 20,
}


async def record(settings: Settings) -> AsyncIterator[tuple[str, str]]:
    async with open_world(settings) as world:
        for language in LANGUAGES:
            most = {f"{shape.rstrip('?')}?lang={language}": number for shape, number in _MOST.items()}
            yield f"staff.{language}.txt", await _staff(world, language, most)
            yield f"owner.{language}.txt", await _owner(world, language, most)


async def _staff(world: World, language: str, most: Mapping[str, int]) -> str:
    browser = await world.signed_in("awa@guichet.example")
    return await _pages(browser, ["/admin"], language, most)


async def _owner(world: World, language: str, most: Mapping[str, int]) -> str:
    email = f"owner-{language}@kora.example"
    from guichet.db.engine import require
    from guichet.merchants import repository as merchants

    merchant = require(await merchants.get(world.console.service.ctx.db, world.merchant.id))
    await world.join(email, merchant, "owner")
    base = f"/console/{world.merchant.id}"
    return await _pages(
        await world.signed_in(email), [f"{base}/test", f"{base}/live", "/console/security"], language, most
    )


async def _pages(browser: object, roots: list[str], language: str, most: Mapping[str, int]) -> str:
    lines = await crawl(browser, [f"{root}?lang={language}" for root in roots], Placeholders(), most)  # type: ignore[arg-type]
    return "\n".join(lines) + "\n"
