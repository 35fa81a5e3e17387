"""`guichet late-money …`: money that a provider moved after the end was told, and what a person decides about it."""

from typing import Annotated, Final, get_args

import typer

from guichet.cli.approvals import ask_for_approval
from guichet.cli.arguments import EXAMPLE_REFERENCE, By, Evidence, Json, Reference
from guichet.cli.console import console, print_json, print_table, show_rows
from guichet.cli.runner import run
from guichet.clock import iso
from guichet.db.engine import Database
from guichet.domain.approvals import ActRequest
from guichet.domain.late_results import LateResult, LateReturn
from guichet.domain.money import plain
from guichet.domain.payments import Payment
from guichet.domain.records import described
from guichet.late_money import decisions as late_decisions
from guichet.late_money import repository as store
from guichet.late_money import return_repository
from guichet.late_money.decisions import Decision

app = typer.Typer(no_args_is_help=True, help="Money that moved after a failure (or a refund's success) was told.")

_COLUMNS: Final = {
    "merchant_id": "Merchant",
    "subject_type": "Of a",
    "reference": "Reference",
    "stage": "Stage",
    "amount": "Amount",
    "currency": "Currency",
    "provider_account": "Account",
    "told_at": "Told",
    "found_at": "Found",
}


@app.command("list", epilog="Example: `guichet late-money list`")
def list_open(as_json: Json = False) -> None:
    """Show what waits for a decision, oldest first, at most 500."""

    rows = [_described(result) for result in run(lambda ctx: store.still_open(ctx.db))]
    show_rows("late_money", rows, _COLUMNS, as_json=as_json)


@app.command(epilog=f"Example: `guichet late-money show {EXAMPLE_REFERENCE}`")
def show(reference: Reference, as_json: Json = False) -> None:
    """Show one late result, the requests that were to give it back, and the payments by which the same customer may
    have paid again."""
    late, requests, paid_again = run(lambda ctx: _find(ctx.db, reference))
    returns = [described(request, ("reference", "status", "sent_at")) for request in requests]
    again = [
        {"reference": payment.reference, "amount": plain(payment.total_amount), "created_at": iso(payment.created_at)}
        for payment in paid_again
    ]
    if as_json:
        print_json({**_described(late), "returns": returns, "paid_again": again})
        return
    for name, value in _described(late).items():
        console.print(f"{name}: {value}")
    if returns:
        print_table(("Return", "Status", "Sent"), [tuple(row.values()) for row in returns])
    if not again:
        console.print("No other payment of this number succeeded within three days before or after.")
        return
    console.print("The same number also paid this merchant:")
    print_table(("Payment", "Amount", "Created"), [tuple(row.values()) for row in again])


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
            "released: `paid-from-wallet`, or `paid-elsewhere`. For a refund that failed through a fault of ours: "
            "`payer`, from the wallet and our fees.",
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
    ask_for_approval(ActRequest("late_money.resolve", reference, {"to": decision}, evidence), by, as_json=as_json)


async def _find(db: Database, reference: str) -> tuple[LateResult, list[LateReturn], list[Payment]]:
    late = await late_decisions.find(db, reference)
    _, payment = await store.subject_of(db, late)
    return late, await return_repository.of(db, late), await late_decisions.paid_again(db, payment)


def _described(late: LateResult) -> dict[str, object]:
    return described(late, _COLUMNS, amount=plain(late.amount or 0))
