"""`guichet ledger …`: the audit of the books; the statement of a wallet is in `statements.py`."""

from typing import Annotated

import typer

from guichet.bootstrap import Service
from guichet.cli.statement import statement
from guichet.cli.support import (
    Json,
    errors,
    people,
    print_json,
    print_table,
    refuse,
    run,
)
from guichet.clock import iso
from guichet.domain.money import plain
from guichet.ledger import audit as books
from guichet.schemas.json_output import number

app = typer.Typer(no_args_is_help=True, help="The books: audit them, print a wallet's statement.")


def register(commands: typer.Typer) -> None:
    commands.add_typer(app, name="ledger")


app.command(epilog="Example: `guichet ledger statement 1 XOF --from 2026-11-01 --to 2026-11-30 --csv > november.csv`")(
    statement
)


@app.command(epilog="Example: `guichet ledger audit --noted 5f0c…`")
def audit(
    noted: Annotated[
        list[str] | None,
        typer.Option(metavar="DIGEST", help="A head digest written down at an earlier audit; may be given again."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Recompute everything: the chain of seals, every payment, refund, posting, wallet and operator account.

    Exit code 1 when something is wrong, with the first row that is wrong in one sentence. Note the head digest
    elsewhere: with `--noted` a later audit proves that nothing before it was written anew.
    """

    async def work(opened: Service) -> books.Report:
        with errors.status("Reading the books…") as shown:
            ctx = opened.ctx
            tell = lambda read: shown.update(f"Reading the books… {read}")  # noqa: E731
            return await books.audit(ctx.db, ctx.clock, tell, noted or ())

    report = run(work, doing=None)
    if as_json:
        print_json(_described(report))
    else:
        _show(report)
    if report.fault is not None:
        refuse(report.fault)


def _described(report: books.Report) -> dict[str, object]:
    return {
        "clean": report.fault is None,
        "fault": report.fault,
        "head": report.head,
        "started_at": iso(report.started_at),
        "finished_at": iso(report.finished_at),
        "seals": report.seals,
        "postings": report.postings,
        "payments": report.payments,
        "refunds": report.refunds,
        "checks": {check.name: check.fault for check in report.checks},
        "owed": [
            {"env": env, "currency": currency, "operator": operator, "amount": number(amount)}
            for (env, currency, operator), amount in report.owed.items()
        ],
    }


def _show(report: books.Report) -> None:
    print_table(
        ("Check", "Result"),
        [(check.name, check.fault or "✓") for check in report.checks],
    )
    if report.owed:
        print_table(
            ("Environment", "Currency", "Operator", "Owes us"),
            [(*key, plain(each)) for key, each in report.owed.items()],
        )
    people.print(
        f"{report.postings} postings, {report.payments} payments, {report.refunds} refunds, {report.seals} seals."
    )
    people.print(f"Head digest: {report.head or 'nothing is sealed yet'}", soft_wrap=True)
