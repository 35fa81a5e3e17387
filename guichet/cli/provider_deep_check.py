"""`guichet providers check --deep`: what each provider says about our account, and what only a person can look up."""

import asyncio
from collections import Counter
from typing import Final

import typer
from rich.table import Table

from guichet.cli.console import console, error_console, print_json, with_sentence
from guichet.cli.provider_accounts import open_registry
from guichet.printable import printable
from guichet.providers.account_review import findings_of
from guichet.providers.providers_file import ProvidersConfig
from guichet.providers.shared.account_checks import Finding, FindingState
from guichet.settings import Settings

_MARKS: Final[dict[FindingState, str]] = {"ok": "✓", "wrong": "✗", "unchecked": "–"}
_STYLES: Final[dict[FindingState, str]] = {"ok": "green", "wrong": "red", "unchecked": "dim"}


def deep_check(settings: Settings, providers: ProvidersConfig, names: list[str], *, as_json: bool) -> None:
    """Prints the findings about these accounts; exit code 1 when something is wrong."""
    with error_console.status("Calling the providers…"):
        findings = asyncio.run(_find(settings, providers, names))
    if as_json:
        print_json({"accounts": {name: [_described(each) for each in found] for name, found in findings.items()}})
    else:
        for name, found in findings.items():
            _show(name, providers, found)
    if any(each.state == "wrong" for found in findings.values() for each in found):
        raise typer.Exit(1)


async def _find(settings: Settings, providers: ProvidersConfig, names: list[str]) -> dict[str, list[Finding]]:
    async with open_registry(settings, providers) as registry:
        return await findings_of(registry, providers, names, settings.public_url)


def _described(found: Finding) -> dict[str, object]:
    return {"subject": str(found.subject), "state": found.state, **with_sentence("sentence", found.message)}


def _show(name: str, providers: ProvidersConfig, found: list[Finding]) -> None:
    account = providers.accounts[name]
    count = Counter(each.state for each in found)
    title = f"{name}: {account.provider} at {account.base_url} ({count['wrong']} wrong)"
    table = Table("", "What", "Finding", title=title, title_justify="left", header_style="bold")
    for each in found:
        table.add_row(
            _MARKS[each.state], printable(str(each.subject)), printable(str(each.message)), style=_STYLES[each.state]
        )
    console.print(table)
