"""`guichet ledger statement`: a wallet's movements on screen, as CSV for an accountant, as JSON for a program."""

import sys
from typing import Annotated, Any, Final

import typer

from guichet.bootstrap import Service
from guichet.cli import spreadsheets
from guichet.cli.periods import Since, Until
from guichet.cli.support import CommandError, Json, MerchantId, date, known_merchant, people, print_table, run
from guichet.clock import iso
from guichet.domain import posting_rules as ledger
from guichet.domain.merchants import Env
from guichet.domain.money import Currency, plain
from guichet.ledger.wallet_statement import Movement, Statement
from guichet.schemas.json_output import encode, number

#: Rows of one table on screen; a longer statement continues in the next one.
_SCREEN: Final = 500
_KINDS: Final = {
    ledger.COLLECTED: ("collection", "Encaissement"),
    ledger.UNSUSPENDED: ("collection, after suspense", "Encaissement (après suspens)"),
    ledger.HELD: ("refund", "Remboursement"),
    ledger.RELEASED: ("refund given back", "Remboursement annulé"),
}
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


def statement(
    merchant_id: MerchantId,
    currency: Annotated[Currency, typer.Argument(case_sensitive=False, metavar="CURRENCY")],
    since: Since = None,
    until: Until = None,
    env: Annotated[Env, typer.Option(help="Which environment's wallet.")] = "live",
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV in French on stdout: UTF-8, semicolons, 5000,00.")] = False,
    as_json: Json = False,
) -> None:
    """Print a wallet's movements over a period: opening balance, each movement, closing balance, totals.

    A refund leaves the wallet when it is requested, and comes back if its disbursement fails. Fees are shown for
    information: customers pay them on top, they are no part of the wallet.
    """
    if as_csv and as_json:
        raise typer.BadParameter("--csv and --json exclude each other.")

    async def work(opened: Service) -> None:
        ctx = opened.ctx
        await known_merchant(ctx.db, merchant_id)
        upto = ctx.clock.now() if until is None else until
        if since is not None and since > upto:
            raise CommandError("--from is later than --to.")
        wanted = Statement(ctx.db, merchant_id, env, currency, since, upto)
        await (_csv(wanted) if as_csv else _json(wanted) if as_json else _screen(wanted))

    run(work, doing=None)


async def _csv(wanted: Statement) -> None:
    sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
    rows = spreadsheets.writer(sys.stdout, _FRENCH)
    opening = await wanted.opening()
    rows.writerow(_line(wanted.since, "Solde à l'ouverture", balance=opening))
    async for each in wanted.movements():
        debit, credit = _sides(each)
        rows.writerow(
            (
                spreadsheets.moment(each.at),
                _kind(each)[1],
                each.payment_reference,
                each.refund_reference,
                spreadsheets.text(each.external_id),
                spreadsheets.figure(debit) if debit else "",
                spreadsheets.figure(credit) if credit else "",
                spreadsheets.figure(each.balance),
                each.posting_id,
            )
        )
    totals = wanted.totals
    rows.writerow(_line(wanted.until, "Solde à la clôture", totals.debits, totals.credits, wanted.closing))
    rows.writerow(_line(None, "Total des encaissements", credit=totals.collections))
    rows.writerow(_line(None, "Total des remboursements", debit=totals.refunds))
    rows.writerow(_line(None, "Frais payés par les clients (pour information)", credit=totals.fees))


def _line(
    at: int | None, label: str, debit: int | None = None, credit: int | None = None, balance: int | None = None
) -> tuple[str, ...]:
    figures = ("" if each is None else spreadsheets.figure(each) for each in (debit, credit, balance))
    return (spreadsheets.moment(at), label, "", "", "", *figures, "")


async def _screen(wanted: Statement) -> None:
    people.print(f"Opening balance{_on(wanted.since)}: {plain(await wanted.opening())}")
    page: list[Movement] = []
    async for each in wanted.movements():
        page.append(each)
        if len(page) == _SCREEN:
            _print_page(page)
            page = []
    _print_page(page)
    totals = wanted.totals
    people.print(f"Closing balance{_on(wanted.until)}: {plain(wanted.closing)}")
    people.print(
        f"{totals.movements} movements: debits {plain(totals.debits)}, credits {plain(totals.credits)}. "
        f"Collections {plain(totals.collections)}, refunds {plain(totals.refunds)}. "
        f"For information, fees paid by customers: {plain(totals.fees)}."
    )


def _print_page(page: list[Movement]) -> None:
    columns = ("Date", "Movement", "Payment", "Refund", "Order", "Debit", "Credit", "Balance")
    rows = []
    for each in page:
        debit, credit = _sides(each)
        figures = (plain(debit) if debit else "", plain(credit) if credit else "", plain(each.balance))
        references = (each.payment_reference, each.refund_reference, each.external_id)
        rows.append((spreadsheets.moment(each.at), _kind(each)[0], *references, *figures))
    if rows:
        print_table(columns, rows)


async def _json(wanted: Statement) -> None:
    """One object, written as it is read: a long statement is never whole in memory."""
    start = {"opening": number(await wanted.opening()), "from": date(wanted.since), "to": iso(wanted.until)}
    sys.stdout.write(_encoded(start)[:-1] + ',"movements":[')
    separator = ""
    async for each in wanted.movements():
        row = {
            "posting": each.posting_id,
            "date": iso(each.at),
            "kind": each.cause,
            "payment": each.payment_reference,
            "refund": each.refund_reference,
            "external_id": each.external_id,
            "amount": number(each.amount),
            "balance": number(each.balance),
        }
        sys.stdout.write(separator + _encoded(row))
        separator = ","
    totals = wanted.totals
    figures = {name: number(getattr(totals, name)) for name in ("collections", "refunds", "fees", "debits", "credits")}
    end: dict[str, Any] = {"closing": number(wanted.closing), "totals": {**figures, "movements": totals.movements}}
    sys.stdout.write("]," + _encoded(end)[1:] + "\n")


def _encoded(value: object) -> str:
    return encode(value).decode()


def _kind(movement: Movement) -> tuple[str, str]:
    """Its name on screen and in French; any other cause is none of ours, and shown as it is written."""
    return _KINDS.get(movement.cause, (movement.cause, movement.cause))


def _sides(movement: Movement) -> tuple[int, int]:
    """Debit and credit; one of them is zero."""
    return max(0, -movement.amount), max(0, movement.amount)


def _on(instant: int | None) -> str:
    return "" if instant is None else f" on {spreadsheets.moment(instant)} UTC"
