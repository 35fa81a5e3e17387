"""`guichet late-money …`: money that a provider moved after the end was told, and what a person decides about it."""

from dataclasses import dataclass
from typing import Annotated, get_args

import typer

from guichet.bootstrap import Service
from guichet.cli.approvals import ask_for_approval
from guichet.cli.arguments import EXAMPLE_REFERENCE, By, Evidence, Json, Reference
from guichet.cli.console import console, iso_or_none, print_json, print_table
from guichet.cli.runner import run
from guichet.clock import iso
from guichet.db.engine import Database
from guichet.domain.approvals import WantedAct
from guichet.domain.late_results import LateResult
from guichet.domain.money import plain
from guichet.domain.payments import Payment
from guichet.late_money import decisions as late_decisions
from guichet.late_money import repository as store
from guichet.late_money.decisions import Decision

app = typer.Typer(no_args_is_help=True, help="Money that moved after a failure (or a refund's success) was told.")


def register(commands: typer.Typer) -> None:
    commands.add_typer(app, name="late-money")


@app.command("list", epilog="Example: `guichet late-money list`")
def list_open(as_json: Json = False) -> None:
    """Show what waits for a decision, oldest first, at most 500."""

    async def work(opened: Service) -> list[LateResult]:
        return await store.still_open(opened.ctx.db)

    found = [_described(each) for each in run(work)]
    if as_json:
        print_json({"late_money": found})
    else:
        columns = ("Merchant", "Of a", "Reference", "Stage", "Amount", "Currency", "Account", "Told", "Found")
        print_table(columns, [tuple(row.values()) for row in found])


@dataclass(frozen=True, slots=True)
class _Found:
    late: LateResult
    payment: Payment
    paid_again: list[Payment]


@app.command(epilog=f"Example: `guichet late-money show {EXAMPLE_REFERENCE}`")
def show(reference: Reference, as_json: Json = False) -> None:
    """Show one late result, and the payments by which the same customer may have paid again."""
    found = run(lambda opened: _find(opened.ctx.db, reference))
    again = [
        {"reference": each.reference, "amount": plain(each.total_amount), "created_at": iso(each.created_at)}
        for each in found.paid_again
    ]
    if as_json:
        print_json({**_described(found.late), "paid_again": again})
        return
    for name, value in _described(found.late).items():
        console.print(f"{name}: {value}")
    _print_paid_again(found)


@app.command(
    epilog=f'Example: `guichet late-money resolve {EXAMPLE_REFERENCE} --to wallet --evidence "statement" --by Awa`'
)
def resolve(
    reference: Reference,
    decision: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="|".join(get_args(Decision)),
            help="`wallet`: to the merchant, fees to us. `payer`: back by the same route. `returned`: the payer has it "
            "back. `not-returned`: the provider will not pay it back. For a refund that was paid after its hold was "
            "released: `paid-from-wallet`, or `paid-elsewhere`.",
        ),
    ],
    evidence: Evidence,
    by: By,
    as_json: Json = False,
) -> None:
    """Decide about late money; another person approves it in the console. The statuses that merchants were told stay
    as they are; `guichet late-money show` says whether the customer seems to have paid again.
    """
    if decision not in get_args(Decision):
        raise typer.BadParameter(f"--to: one of {', '.join(get_args(Decision))} is expected.")
    ask_for_approval(WantedAct("late_money.resolve", reference, {"to": decision}, evidence), by, as_json=as_json)


async def _find(db: Database, reference: str) -> _Found:
    late = await late_decisions.find(db, reference)
    _, payment = await store.subject_of(db, late)
    return _Found(late, payment, await late_decisions.paid_again(db, payment))


def _print_paid_again(found: _Found) -> None:
    if not found.paid_again:
        console.print("No other payment of this number succeeded within three days before or after.")
        return
    rows = [(each.reference, plain(each.total_amount), iso(each.created_at)) for each in found.paid_again]
    console.print("The same number also paid this merchant:")
    print_table(("Payment", "Amount", "Created"), rows)


def _described(late: LateResult) -> dict[str, object]:
    return {
        "merchant_id": late.merchant_id,
        "subject_type": late.subject_type,
        "reference": late.reference,
        "stage": late.stage,
        "amount": plain(late.amount or 0),
        "currency": late.currency,
        "provider_account": late.provider_account,
        "told_at": iso(late.told_at),
        "found_at": iso_or_none(late.found_at),
    }
