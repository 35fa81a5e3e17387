"""docs/providers/README.md shows the routes of each operator code as the packaged providers' file and the code have
them. After a change, paste what the failing test prints."""

import re
from importlib import resources
from pathlib import Path
from typing import Final

from guichet.clock import SystemClock
from guichet.http_client import HttpClient
from guichet.merchants.catalogue_file import load_catalogue
from guichet.providers.providers_file import read_providers_file
from tests.docs.tables import ROOT

PAGE: Final = ROOT / "docs" / "providers" / "README.md"
_TWO: Final = 2
_HEADER: Final = "| Code | Routes | Gives the debit back | Pays to a number |\n|---|---|---|---|\n"


def routes_table() -> dict[str, list[list[str]]]:
    """By code: the provider types of its routes in order, those that refund a debit of theirs, those that pay out."""
    codes = [mode.operator for mode in load_catalogue(None).modes]
    packaged = resources.files("guichet.data") / "simulated_providers.toml"
    file = read_providers_file(Path(str(packaged)), {}, codes, {"simulator": "http://127.0.0.1:8000/simulator"})
    registry = file.registry(SystemClock(), HttpClient())
    table = {}
    for code in codes:
        routed = [(file.accounts[name].provider, registry.provider(name)) for name in file.routes.get(code, ())]
        table[code] = [
            [kind for kind, _ in routed],
            [
                kind
                for kind, provider in routed
                if provider.can_refund(code, collected_here=True) and not provider.pays_out(code, collected_here=True)
            ],
            [kind for kind, provider in routed if provider.can_refund(code, collected_here=False)],
        ]
    return table


def rendered(table: dict[str, list[list[str]]]) -> str:
    rows = [f"| {code} | {' | '.join(', '.join(kinds) or '–' for kinds in cells)} |" for code, cells in table.items()]
    return _HEADER + "\n".join(rows)


def test_the_page_shows_the_routes_as_they_are() -> None:
    expected = rendered(routes_table())
    shown = PAGE.read_text(encoding="utf-8").split("<!-- table: routes -->\n\n")[1].split("\n\n")[0]
    assert shown == expected, f"paste into {PAGE.name}:\n{expected}"


def test_every_code_has_two_routes_or_the_page_says_that_there_is_no_other() -> None:
    alone = {code for code, (routes, _, _) in routes_table().items() if len(routes) < _TWO}
    [sentence] = re.findall(r"^Nobody else offers (.+?):", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", sentence)) == alone
