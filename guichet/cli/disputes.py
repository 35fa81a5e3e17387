"""`guichet dispute …`: payments that customers contest with their bank, and who bears what is lost."""

from typing import Annotated, Final, get_args

import typer

from guichet.cli.approvals import ask_for_approval
from guichet.cli.arguments import EXAMPLE_REFERENCE, By, Evidence, Json, Reference
from guichet.cli.console import show_rows
from guichet.cli.runner import run
from guichet.disputes import repository as dispute_repository
from guichet.domain.approvals import ActRequest
from guichet.domain.disputes import Bearer
from guichet.domain.money import plain
from guichet.domain.records import described

app = typer.Typer(no_args_is_help=True, help="Payments that customers contest with their bank.")

_COLUMNS: Final = {
    "reference": "Dispute",
    "merchant_id": "Merchant",
    "payment": "Payment",
    "status": "Status",
    "amount": "Amount",
    "currency": "Currency",
    "reason": "Reason",
    "opened_at": "Opened",
    "evidence_due_at": "Answer by",
}


@app.command("list", epilog="Example: `guichet dispute list`")
def list_undecided(as_json: Json = False) -> None:
    """Show open disputes, and lost or prevented ones that nobody bears yet."""

    disputes = run(lambda ctx: dispute_repository.undecided(ctx.db))
    rows = [described(row, _COLUMNS, payment=row.payment_reference, amount=plain(row.amount)) for row in disputes]
    show_rows("disputes", rows, _COLUMNS, as_json=as_json)


@app.command(
    epilog=f'Example: `guichet dispute resolve {EXAMPLE_REFERENCE} --from merchant --evidence "contract" --by Awa`'
)
def resolve(
    reference: Reference,
    bearer: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="|".join(get_args(Bearer)),
            help="Who bears it: the merchant's wallet, or we; nobody: a prevented one took nothing.",
        ),
    ],
    evidence: Evidence,
    by: By,
    as_json: Json = False,
) -> None:
    """Say who bears a lost or prevented dispute. A merchant bears at most its part of the payment, never our fees.
    Another person approves it in the console.
    """
    if bearer not in get_args(Bearer):
        raise typer.BadParameter(f"--from: one of {', '.join(get_args(Bearer))} is expected.")
    ask_for_approval(ActRequest("dispute.resolve", reference, {"from": bearer}, evidence), by, as_json=as_json)
