"""`guichet refund …`: what a person must decide about a refund."""

from typing import Annotated
from uuid import UUID

import typer

from guichet.bootstrap import Service
from guichet.cli.arguments import Json
from guichet.cli.console import CommandError, console, print_json
from guichet.cli.runner import run
from guichet.domain.payments import Refund
from guichet.payments import payee_confirmation

app = typer.Typer(no_args_is_help=True, help="Refunds that a person must decide about.")


def register(commands: typer.Typer) -> None:
    commands.add_typer(app, name="refund")


def _reference(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a reference: a UUID is expected.") from None


@app.command(
    "confirm-payee",
    epilog="Example: `guichet refund confirm-payee 5f0c7a10-6a54-4a8e-9d0e-2f9f6d1f6a01 --phone 2250701020304 "
    '--evidence "Orange ticket 4411 names the payer" --by "Awa Diop"`',
)
def confirm_payee(
    reference: Annotated[str, typer.Argument(parser=_reference, help="As `guichet incidents` shows it.")],
    phone: Annotated[str, typer.Option("--phone", help="The number that paid, with its country code.")],
    evidence: Annotated[str, typer.Option("--evidence", help="How you know that this number paid.")],
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who confirms it.")],
    as_json: Json = False,
) -> None:
    """Say which number gets a refund that waits because no provider states who paid (incident `payee_unconfirmed`). The
    refund is sent there at once.
    """

    async def work(opened: Service) -> Refund:
        try:
            return await payee_confirmation.confirm_payee(opened.ctx, reference, phone, actor=by, evidence=evidence)
        except payee_confirmation.PayeeNotConfirmed as refusal:
            raise CommandError(f"{refusal}.") from None

    refund = run(work)
    if as_json:
        print_json({"reference": refund.reference, "status": refund.status, "payee_number": refund.payee_number})
        return
    console.print(f"The refund {refund.reference} goes to {refund.payee_number}.")
