"""Lines of each package, files and functions of each way, bytes of each page."""

from pathlib import Path
from typing import Final

import guichet
from bench import console, seed, servers
from bench.loads import get
from bench.pages_3g import shop_with_pages
from bench.ways.ways import record

ROOT: Final = Path(guichet.__file__).parent.parent
PACKAGES: Final = ("guichet", "guichet_demo", "guichet_simulator")
_PAYMENTS: Final = 200


async def lines(_: Path) -> dict[str, float]:
    """Of Python, without migrations; a folder of a provider has a line of its own beside its package's."""
    found: dict[str, float] = {}
    for package in PACKAGES:
        if (ROOT / package).is_dir():
            found[f"lines of {package}"] = _lines(ROOT / package)
    found["lines of the packages"] = sum(found.values())
    for package in ("guichet/providers", "guichet_simulator"):
        for folder in sorted(path.parent for path in (ROOT / package).glob("*/__init__.py")):
            if folder.name != "shared":
                found[f"lines of {folder.relative_to(ROOT)}"] = _lines(folder)
    return found


def _lines(folder: Path) -> int:
    files = (path for path in folder.rglob("*.py") if "migrations" not in path.parts)
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


async def ways(_: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, walk in (await record()).items():
        functions = walk.trace.functions
        found[f"way of a {name}: files"] = len({function.file for function in functions})
        if walk.answered:
            found[f"way of a {name}: files until the answer"] = walk.answered
        found[f"way of a {name}: functions"] = len(functions)
        found[f"way of a {name}: calls between files"] = walk.trace.hops
    return found


async def pages(home: Path) -> dict[str, float]:
    """As gzip sends them, without headers."""
    found: dict[str, float] = {}
    async with shop_with_pages() as (checkout, addresses):
        for name, path in addresses.items():
            found[f"bytes of the page {name}"] = (await checkout.get(path, Accept_Encoding="gzip")).wire_size
    settings = servers.settings_for(home)
    merchant = await seed.seed(settings, _PAYMENTS)
    people = await console.sign_in(settings, merchant)
    (payment,) = await console.references(settings, [2])
    merchants = ("", "/payments", f"/payments/{payment}", "/balance", "/exports", "/webhooks/deliveries", "/activity")
    contents = {f"/console{path}": people.page(path) for path in (*merchants, "/developers/requests", "/links")}
    staff = ("", "/merchants", f"/merchants/{merchant.id}", "/payments/2", "/wallets", "/incidents", "/audit-log")
    contents |= {f"/admin{path}": people.staff_page(path) for path in staff}
    async with servers.guichet(settings, merchant.key, worker=False) as target:
        for path, content in contents.items():
            name = path.replace(payment, "{reference}")
            found[f"bytes of the page {name}"] = len(await get(target.port, content, decompress=False))
    return found
