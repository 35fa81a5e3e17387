"""docs/live.md lists the provider types and their settings as they are."""

from pathlib import Path

from guichet.providers.provider_types import PROVIDER_TYPES
from guichet_simulator.app import PROVIDERS as SIMULATED

DOCS = (Path(__file__).parents[2] / "docs" / "live.md").read_text(encoding="utf-8")


def test_live_guide_table_lists_the_provider_types() -> None:
    lines = [line for line in DOCS.splitlines() if line.startswith("| `") and line.count("|") == 5]
    listed = {}
    for line in lines:
        provider_type, _, required, optional = (cell.strip() for cell in line.strip("|").split("|"))
        listed[provider_type.strip("`")] = (required, optional)
    assert listed == {
        name: (", ".join(each.required), ", ".join(each.optional) or "–") for name, each in PROVIDER_TYPES.items()
    }


def test_every_provider_type_is_simulated() -> None:
    # MTN has two platforms, between which its clients are moving.
    assert {provider.name for provider in SIMULATED} == {*PROVIDER_TYPES, "mtn_new_platform"}
