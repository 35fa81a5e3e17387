"""Pages of the console and its exports, from one server on its embedded database."""

from typing import Final
from urllib.parse import quote

from bench import console, servers
from bench.console import PAGE_CONNECTIONS
from bench.generator import Load
from bench.loads import Wrong, get, run
from bench.measures.reads import Read
from bench.servers import HOST, Merchant, Target
from guichet.clock import DAY, SystemClock, earlier, later
from guichet.settings import Settings

#: Payments of this many days make a file that is written while it is downloaded.
_EXPORTED: Final = 30 * DAY


async def measure(settings: Settings, merchant: Merchant, count: int, seconds: float) -> list[Read]:
    """The overview, each kind of search, and the download of a CSV file. `count`: the payments that were seeded."""
    people = await console.sign_in(settings, merchant)
    shown = await console.references(settings, list(range(1, count, count // 97)))
    pages = {"the console's overview of 30 days": [people.page()], "its list of payments": [people.page("/payments")]}
    for name, wanted in console.searches(count, shown).items():
        pages[f"its search by {name}"] = [people.page(f"/payments?q={quote(each)}") for each in wanted]
    begun = earlier(SystemClock().now(), 330 * DAY)
    number = await console.direct_export(settings, merchant, begun, later(begun, _EXPORTED))
    async with servers.guichet(settings, merchant.key, worker=True) as target:
        found = [await _read(name, contents, target, seconds) for name, contents in pages.items()]
        file = people.page(f"/exports/{number}/file")
        rows = (await get(target.port, file)).count(b"\r\n") - 1
        download = await _read(f"a CSV of {rows:,} payments, streamed", [file], target, seconds)
        return [*found, Read(download.name, download.per_second, download.half, rows)]


async def _read(name: str, contents: list[bytes], target: Target, seconds: float) -> Read:
    """Raises Wrong."""
    port = target.port
    await get(port, contents[0])  # The first one compiles its template.
    try:
        full = await run(Load(HOST, port, contents, seconds, 0.5, PAGE_CONNECTIONS))
        half = await run(Load(HOST, port, contents, seconds, 0.5, 2 * PAGE_CONNECTIONS, full.per_second / 2))
    except Wrong as wrong:
        raise Wrong(f"{name}: {wrong}") from wrong
    return Read(name, full.per_second, half)
