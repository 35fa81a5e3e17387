"""`guichet reconcile`: an operator's statement against our books."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from guichet.bootstrap import Service, live_providers
from guichet.cli.periods import Since, Until
from guichet.cli.provider_statement_file import FIELDS, MEANINGS, Read, UnreadableStatement, read_statement
from guichet.cli.reconcile_report import Compared, Output, show
from guichet.cli.support import Json, errors, run, settings_or_refusal
from guichet.clock import DAY, Instant
from guichet.domain.reconciliation import (
    MATCHED,
    PAYMENT,
    REFUND,
    Line,
)
from guichet.ledger.reconciliation import reconcile as compare
from guichet.providers.base import History
from guichet.providers.providers_file import ProvidersConfig
from guichet.settings import SettingsError, with_development_key


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: `guichet reconcile feexpay november.csv --csv differences.csv`")(reconcile)


def reconcile(
    family: Annotated[str, typer.Argument(metavar="FAMILY", help="An API family, or one connection's name.")],
    statement: Annotated[
        Path | None, typer.Argument(metavar="STATEMENT.csv", exists=True, dir_okay=False, help="The operator's export.")
    ] = None,
    fetch: Annotated[bool, typer.Option("--fetch", help="Ask the operator's own history instead of a file.")] = False,
    since: Since = None,
    until: Until = None,
    only: Annotated[str | None, typer.Option(metavar="payment|refund", help="The statement has only these.")] = None,
    column: Annotated[
        list[str] | None, typer.Option(metavar="FIELD=NAME", help=f"Which column is which: {', '.join(FIELDS)}.")
    ] = None,
    word: Annotated[
        list[str] | None, typer.Option(metavar="WORD=MEANING", help=f"What a word means: {', '.join(MEANINGS)}.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--csv", metavar="OUT", help="Write every line here, matched too.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare an operator's statement with our payments and refunds of its connections.

    Exit code 1 when something differs, 2 when the statement cannot be read. Without dates the period is that of the
    statement.
    """
    if (statement is None) != fetch:
        raise typer.BadParameter("either a file or --fetch is expected.")
    if only not in (None, PAYMENT, REFUND):
        raise typer.BadParameter("--only payment or --only refund is expected.")
    operators = _operators()
    names = _connections(operators, family)
    columns, words = _pairs(column, FIELDS), {key.lower(): value for key, value in _pairs(word, None).items()}
    if unknown := next((value for value in words.values() if value not in MEANINGS), None):
        raise typer.BadParameter(f"{unknown} is no meaning: one of {', '.join(MEANINGS)} is expected.")
    kinds = [only] if only else [PAYMENT, REFUND]
    read = None if statement is None else _read(statement, operators.accounts[names[0]].provider, columns, words)

    async def work(opened: Service) -> Compared:
        with errors.status("Comparing…") as shown:
            found = read or await _fetched(opened, names, since, until)
            start, end = since or found.since, until or found.until
            result = Compared(Counter(), [], found.ignored, start, end)
            tell = lambda text: shown.update(f"Comparing… {text}")  # noqa: E731
            with Output(out) as output:
                async for finding in compare(opened.ctx.db, found.lines, names, start, end, kinds, tell):
                    result.counts[finding.outcome] += 1
                    output.write(finding)
                    if finding.outcome != MATCHED:
                        result.differences.append(finding)
        return result

    compared = run(work, doing=None, operators=operators)
    show(compared, as_json=as_json)
    if compared.differences:
        raise typer.Exit(1)


def _operators() -> ProvidersConfig:
    try:
        return live_providers(with_development_key(settings_or_refusal()))
    except SettingsError as error:
        _unreadable(str(error))


def _connections(operators: ProvidersConfig, family: str) -> list[str]:
    names = [name for name, each in operators.accounts.items() if family in (name, each.provider)]
    if not names:
        known = sorted({each.provider for each in operators.accounts.values()} | set(operators.accounts))
        raise typer.BadParameter(f"no connection is of the family {family}; there are {', '.join(known) or 'none'}.")
    return names


def _pairs(given: Sequence[str] | None, allowed: Sequence[str] | None) -> dict[str, str]:
    pairs = {}
    for each in given or ():
        key, equals, value = each.rpartition("=")
        if not equals or not key or not value or (allowed is not None and key not in allowed):
            raise typer.BadParameter(f"{each} is not of the form {'FIELD=NAME' if allowed else 'WORD=MEANING'}.")
        pairs[key] = value
    return pairs


def _read(path: Path, family: str, columns: Mapping[str, str], words: Mapping[str, str]) -> Read:
    try:
        return read_statement(path, family, columns, words)
    except UnreadableStatement as error:
        _unreadable(str(error))


def _unreadable(sentence: str) -> NoReturn:
    errors.print(f"✗ {sentence}")
    raise typer.Exit(2)


async def _fetched(opened: Service, names: Sequence[str], since: Instant | None, until: Instant | None) -> Read:
    if since is None:
        _unreadable("--fetch needs --from: an operator lists a period.")
    now = opened.ctx.clock.now()
    end = min(until or now, now + DAY)
    lines: list[Line] = []
    for name in names:
        provider = opened.ctx.registry.provider(name)
        if not isinstance(provider, History):
            _unreadable(f"{name} has no history to fetch: bring its export as a file.")
        found = await provider.history(since, end)
        if not isinstance(found, list):
            _unreadable(f"The history of {name} cannot be had: {found.raw}.")
        lines += found
    return Read(lines, 0, since, end)
