"""`guichet refund …`: what a person does with one refund."""

from typing import Annotated

import typer

from guichet.bootstrap import Service
from guichet.cli import manual_settlement
from guichet.cli.approvals import ask_for_approval, needs_approval
from guichet.cli.arguments import EXAMPLE_REFERENCE, By, Evidence, Json, OptionalBy, OptionalEvidence, Reference, actor
from guichet.cli.console import CommandError, console, print_json
from guichet.cli.manual_settlement import Approver, Outcome, Override
from guichet.cli.runner import run
from guichet.domain.approvals import WantedAct
from guichet.domain.payments import Refund
from guichet.refunds import payee_confirmation
from guichet.refunds import repository as refund_repository

app = typer.Typer(no_args_is_help=True, help="What a person does with one refund.")


def register(commands: typer.Typer) -> None:
    commands.add_typer(app, name="refund")


@app.command(epilog=f'Example: `guichet refund settle {EXAMPLE_REFERENCE} --succeeded --evidence "statement" --by Awa`')
def settle(
    reference: Reference,
    succeeded: Outcome = None,
    evidence: OptionalEvidence = None,
    by: OptionalBy = None,
    override: Override = False,
    approve: Approver = None,
    as_json: Json = False,
) -> None:
    """End a pending refund that its provider does not end.

    `--succeeded`: the customer has the money. `--failed`: it was never paid, and the merchant gets its part back. The
    provider is asked first: if it explicitly says the contrary, nothing happens.
    """
    manual_settlement.settle("refund", reference, succeeded, evidence, by, override, approve, as_json)


@app.command(
    "confirm-payee",
    epilog=f"Example: `guichet refund confirm-payee {EXAMPLE_REFERENCE} --phone 2250701020304 "
    '--evidence "Orange ticket 4411" --by Awa`',
)
def confirm_payee(
    reference: Reference,
    phone: Annotated[str, typer.Option("--phone", help="The number that paid, with its country code.")],
    evidence: Evidence,
    by: By,
    as_json: Json = False,
) -> None:
    """Say which number gets a refund that waits because no provider states who paid (incident `payee_unconfirmed`). The
    refund is sent there at once.
    """
    if needs_approval():
        wanted = WantedAct("refund.confirm_payee", reference, {"phone": phone}, evidence)
        ask_for_approval(wanted, by, as_json=as_json)
        return

    async def work(opened: Service) -> Refund:
        found = await refund_repository.find(opened.ctx.db, reference)
        if found is None:
            raise CommandError(f"There is no refund {reference}.")
        return await payee_confirmation.confirm_payee(opened.ctx, found, phone, actor(by), evidence)

    refund = run(work)
    if as_json:
        print_json({"reference": refund.reference, "status": refund.status, "payee_number": refund.payee_number})
        return
    console.print(f"The refund {refund.reference} goes to {refund.payee_number}.")
