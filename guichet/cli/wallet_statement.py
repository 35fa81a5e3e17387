"""`guichet ledger statement`: a wallet's movements on screen, as CSV for an accountant, as JSON for a program."""

import sys
from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

from guichet.cli.arguments import Json, MerchantId, Since, Until
from guichet.cli.console import console, json_text, print_table
from guichet.cli.errors import CommandError
from guichet.cli.runner import get_merchant, run
from guichet.clock import Instant, iso
from guichet.context import AppContext
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency, number, plain
from guichet.domain.records import iso_or_none
from guichet.exports import cells
from guichet.ledger.balance_checkpoints import WalletKey
from guichet.ledger.monthly_statement import MOVEMENT_NAMES
from guichet.ledger.wallet_statement import Movement, Statement

#: Rows of one table on screen; a longer statement continues in another table.
_PAGE_ROWS: Final = 500
_FRENCH: Final = (
    "Date (UTC)",
    "Nature",
    "Référence du paiement",
    "Référence du remboursement",
    "Référence marchand",
    "Débit",
    "Crédit",
    "Solde",
    "Écriture",
)


def print_statement(
    merchant_id: MerchantId,
    currency: Annotated[Currency, typer.Argument(case_sensitive=False, metavar="CURRENCY")],
    since: Since = None,
    until: Until = None,
    env: Annotated[Environment, typer.Option(help="Which environment's wallet.")] = "live",
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV in French on stdout: UTF-8, semicolons, 5000,00.")] = False,
    as_json: Json = False,
) -> None:
    """Print a wallet's movements over a period: opening balance, each movement, closing balance, totals.

    A refund leaves the wallet when it is requested, and comes back if its disbursement fails. Fees are shown for
    information only: customers pay them on top of the amount, and they do not enter the wallet.
    """
    if as_csv and as_json:
        raise typer.BadParameter("--csv and --json exclude each other.")

    async def work(ctx: AppContext) -> None:
        await get_merchant(ctx.db, merchant_id)
        now = ctx.clock.now()
        upto = now if until is None else until
        if since is not None and since > upto:
            raise CommandError("--from is later than --to.")
        statement = Statement(ctx.db, WalletKey(merchant_id, env, currency), since, upto, now)
        await (_csv(statement) if as_csv else _json(statement) if as_json else _screen(statement))

    run(work, message=None)


async def _csv(statement: Statement) -> None:
    sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
    rows = cells.writer(sys.stdout, _FRENCH)
    opening = await statement.opening()
    rows.writerow(_line(statement.since, "Solde à l'ouverture", balance=opening))
    async for movement in statement.movements():
        order = cells.text(movement.external_id)
        rows.writerow((*_cells(movement, order, cells.amount, french=True), movement.posting_id))
    totals = statement.totals
    rows.writerow(_line(statement.until, "Solde à la clôture", totals.debits, totals.credits, statement.closing))
    rows.writerow(_line(None, "Total des encaissements", credit=totals.collections))
    rows.writerow(_line(None, "Total des remboursements", debit=totals.refunds))
    rows.writerow(_line(None, "Frais payés par les clients (pour information)", credit=totals.fees))


def _line(
    at: Instant | None, label: str, debit: int | None = None, credit: int | None = None, balance: int | None = None
) -> tuple[str, ...]:
    amounts = ("" if amount is None else cells.amount(amount) for amount in (debit, credit, balance))
    return (cells.moment(at), label, "", "", "", *amounts, "")


async def _screen(statement: Statement) -> None:
    console.print(f"Opening balance{_on(statement.since)}: {plain(await statement.opening())}")
    page: list[Movement] = []
    async for movement in statement.movements():
        page.append(movement)
        if len(page) == _PAGE_ROWS:
            _print_page(page)
            page = []
    _print_page(page)
    totals = statement.totals
    console.print(f"Closing balance{_on(statement.until)}: {plain(statement.closing)}")
    console.print(
        f"{totals.movements} movements: debits {plain(totals.debits)}, credits {plain(totals.credits)}. "
        f"Collections {plain(totals.collections)}, refunds {plain(totals.refunds)}. "
        f"For information, fees paid by customers: {plain(totals.fees)}."
    )


def _print_page(page: list[Movement]) -> None:
    columns = ("Date", "Movement", "Payment", "Refund", "Order", "Debit", "Credit", "Balance")
    if page:
        print_table(columns, [_cells(movement, movement.external_id, plain, french=False) for movement in page])


async def _json(statement: Statement) -> None:
    """Writes one object while it reads: a long statement is never in memory as a whole."""
    start = {
        "opening": number(await statement.opening()),
        "from": iso_or_none(statement.since),
        "to": iso(statement.until),
    }
    sys.stdout.write(json_text(start)[:-1] + ',"movements":[')
    separator = ""
    async for movement in statement.movements():
        row = {
            "posting": movement.posting_id,
            "date": iso(movement.at),
            "kind": movement.cause,
            "payment": movement.payment_reference,
            "refund": movement.refund_reference,
            "external_id": movement.external_id,
            "amount": number(movement.amount),
            "balance": number(movement.balance),
        }
        sys.stdout.write(separator + json_text(row))
        separator = ","
    totals = statement.totals
    sums = {name: number(getattr(totals, name)) for name in ("collections", "refunds", "fees", "debits", "credits")}
    end: dict[str, Any] = {
        "closing": number(statement.closing),
        "totals": {**sums, "movements": totals.movements},
    }
    sys.stdout.write("]," + json_text(end)[1:] + "\n")


def _cells(
    movement: Movement, order: str | None, written: Callable[[int], str], *, french: bool
) -> tuple[str | None, ...]:
    """Up to the balance. An unknown cause is shown as it is stored."""
    on_screen, in_french = MOVEMENT_NAMES.get(movement.cause, (movement.cause, movement.cause))
    amount = written(abs(movement.amount))
    sides = (amount, "") if movement.amount < 0 else ("", amount)
    references = (movement.payment_reference, movement.refund_reference, order)
    return (
        cells.moment(movement.at),
        in_french if french else on_screen,
        *references,
        *sides,
        written(movement.balance),
    )


def _on(instant: Instant | None) -> str:
    return "" if instant is None else f" on {cells.moment(instant)} UTC"
