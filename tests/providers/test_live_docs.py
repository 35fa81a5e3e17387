"""docs/live.md tells the families and their settings as they are."""

from pathlib import Path

from guichet.providers.families import FAMILIES
from guichet_simulator.registry import _FAMILIES as SIMULATED

DOCS = (Path(__file__).parents[2] / "docs" / "live.md").read_text(encoding="utf-8")


def test_the_table_of_families_is_the_registry() -> None:
    lines = [line for line in DOCS.splitlines() if line.startswith("| `") and line.count("|") == 5]
    told = {}
    for line in lines:
        family, _, required, optional = (cell.strip() for cell in line.strip("|").split("|"))
        told[family.strip("`")] = (required, optional)
    assert told == {
        name: (", ".join(each.required), ", ".join(each.optional) or "–") for name, each in FAMILIES.items()
    }


def test_every_family_has_its_simulator() -> None:
    assert {family.name for family in SIMULATED} == set(FAMILIES)
