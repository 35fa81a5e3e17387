"""`guichet dispute …`: payments that customers contest with their bank, and who bears what is lost."""

from typing import Annotated, get_args

import typer

from guichet.bootstrap import Service
from guichet.cli.approvals import ask_for_approval
from guichet.cli.arguments import EXAMPLE_REFERENCE, By, Evidence, Json, Reference
from guichet.cli.console import iso_or_none, print_json, print_table
from guichet.cli.runner import run
from guichet.clock import iso
from guichet.disputes import repository as dispute_repository
from guichet.domain.approvals import WantedAct
from guichet.domain.disputes import Bearer, Dispute
from guichet.domain.money import plain

app = typer.Typer(no_args_is_help=True, help="Payments that customers contest with their bank.")


def register(commands: typer.Typer) -> None:
    commands.add_typer(app, name="dispute")


@app.command("list", epilog="Example: `guichet dispute list`")
def list_undecided(as_json: Json = False) -> None:
    """Show open disputes, and lost ones that nobody bears yet."""

    async def work(opened: Service) -> list[Dispute]:
        return await dispute_repository.undecided(opened.ctx.db)

    found = [_described(each) for each in run(work)]
    if as_json:
        print_json({"disputes": found})
    else:
        columns = ("Dispute", "Merchant", "Payment", "Status", "Amount", "Currency", "Reason", "Opened", "Answer by")
        print_table(columns, [tuple(row.values()) for row in found])


@app.command(
    epilog=f'Example: `guichet dispute resolve {EXAMPLE_REFERENCE} --from merchant --evidence "contract" --by Awa`'
)
def resolve(
    reference: Reference,
    bearer: Annotated[
        str,
        typer.Option("--from", metavar="|".join(get_args(Bearer)), help="Who bears it: the merchant's wallet, or we."),
    ],
    evidence: Evidence,
    by: By,
    as_json: Json = False,
) -> None:
    """Say who bears a lost dispute. A merchant bears at most its part of the payment, never our fees. Another person
    approves it in the console.
    """
    if bearer not in get_args(Bearer):
        raise typer.BadParameter("--from merchant or --from service is expected.")
    ask_for_approval(WantedAct("dispute.resolve", reference, {"from": bearer}, evidence), by, as_json=as_json)


def _described(dispute: Dispute) -> dict[str, object]:
    return {
        "reference": dispute.reference,
        "merchant_id": dispute.merchant_id,
        "payment": dispute.payment_reference,
        "status": dispute.status,
        "amount": plain(dispute.amount),
        "currency": dispute.currency,
        "reason": dispute.reason,
        "opened_at": iso(dispute.opened_at),
        "evidence_due_at": iso_or_none(dispute.evidence_due_at),
    }
