"""`guichet ledger …`: the audit of the ledger, a wallet's statement, the margin of each operator."""

from collections.abc import Callable
from typing import Annotated, Final

import typer

from guichet.chain_heads import known_heads, publish_heads
from guichet.cli.arguments import Json, KnownDigests, KnownHeadsFile, Since, Until
from guichet.cli.console import console, error_console, print_json, print_table, with_sentence
from guichet.cli.errors import fail
from guichet.cli.runner import run
from guichet.cli.wallet_statement import print_statement
from guichet.context import AppContext
from guichet.domain.money import number, plain
from guichet.domain.records import described, iso_or_none
from guichet.ledger import audit as ledger
from guichet.ledger.margin import Margin, margins

_MARGIN: Final = {
    "operator": "Operator",
    "currency": "Currency",
    "payments": "Payments",
    "fees": "Fees",
    "provider_fees": "Provider fees",
    "margin": "Margin",
}
app = typer.Typer(no_args_is_help=True, help="The ledger: audit it, print a wallet's statement or the margins.")

app.command(
    "statement",
    epilog="Example: `guichet ledger statement 1 XOF --from 2026-11-01 --to 2026-11-30 --csv > november.csv`",
)(print_statement)


@app.command(epilog="Example: `guichet ledger margin --from 2026-11-01 --to 2026-11-30`")
def margin(since: Since = None, until: Until = None, as_json: Json = False) -> None:
    """Print the margin of each operator: the fees of live payments less what the providers charged.

    A provider's fee counts on the day on which its statement was compared, usually the day after the payment; what no
    statement has named is not in it. Reads every posting of the period, and none outside it.
    """

    rows = run(lambda ctx: margins(ctx.db, since, until)).values()
    if as_json:
        described_rows = [_described_margin(row, number) for row in rows]
        print_json({"from": iso_or_none(since), "to": iso_or_none(until), "margins": described_rows})
    elif not rows:
        console.print("There is no live payment in this period.")
    else:
        print_table([*_MARGIN.values()], [[*_described_margin(row, plain).values()] for row in rows])


def _described_margin(row: Margin, written: Callable[[int], object]) -> dict[str, object]:
    amounts = {name: written(getattr(row, name)) for name in ("fees", "provider_fees", "margin")}
    return described(row, _MARGIN, **amounts)


@app.command(epilog="Example: `guichet ledger audit --known-heads heads.jsonl`")
def audit(
    known_head: KnownDigests = None,
    known_heads_file: KnownHeadsFile = None,
    read_only: Annotated[
        bool,
        typer.Option("--read-only", help="Write nothing and publish no heads: for a restored copy or a standby."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check the whole ledger: the hash chain, every payment, refund, posting, wallet and operator balance.

    The hash chain must still contain the heads of earlier audits, those in the file of `GUICHET_LEDGER_HEADS`, and
    those that are given. Exit code 1 when something is wrong, with one sentence that names the first wrong row.
    """

    async def work(ctx: AppContext) -> ledger.Report:
        with error_console.status("Reading the ledger…") as status:
            tell = lambda read: status.update(f"Reading the ledger… {read}")  # noqa: E731
            known = await known_heads(ctx.db, ctx.settings, known_head or (), known_heads_file)
            report = await ledger.audit(ctx.db, ctx.clock, tell, known, record=not read_only)
        if report.fault is None and not read_only:
            await publish_heads(ctx.db, ctx.http_client, ctx.settings, ctx.clock.now())
        return report

    report = run(work, message=None)
    if as_json:
        print_json(_described(report))
    else:
        _show(report)
    if report.fault is not None:
        fail(report.fault)


def _described(report: ledger.Report) -> dict[str, object]:
    names = "head head_posting_id started_at finished_at hash_chain_links postings payments refunds"
    return {
        "clean": report.fault is None,
        **with_sentence("fault", report.fault),
        **described(report, names.split()),
        "checks": {check.name: check.fault and str(check.fault) for check in report.checks},
        "owed": [
            {"env": env, "currency": currency, "account": account, "wallet": wallet, "amount": number(amount)}
            for (env, currency, account, wallet), amount in report.owed.items()
        ],
    }


def _show(report: ledger.Report) -> None:
    print_table(("Check", "Result"), [(check.name, check.fault or "✓") for check in report.checks])
    if report.owed:
        print_table(
            ("Environment", "Currency", "Account", "Wallet", "Ours there"),
            [(*key, plain(amount)) for key, amount in report.owed.items()],
        )
    console.print(
        f"{report.postings} postings, {report.payments} payments, {report.refunds} refunds, "
        f"{report.hash_chain_links} hash chain links."
    )
    console.print(f"Head digest: {report.head or 'the hash chain is empty'}", soft_wrap=True)
