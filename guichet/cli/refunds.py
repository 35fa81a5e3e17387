"""`guichet refund …`: what a person does with one refund."""

from typing import Annotated

import typer

from guichet.cli.approvals import Outcome, Override, ask_for_approval, settlement
from guichet.cli.arguments import EXAMPLE_REFERENCE, By, Evidence, Json, Reference
from guichet.domain.approvals import ActRequest

app = typer.Typer(no_args_is_help=True, help="What a person does with one refund.")


@app.command(epilog=f'Example: `guichet refund settle {EXAMPLE_REFERENCE} --succeeded --evidence "statement" --by Awa`')
def settle(
    reference: Reference,
    evidence: Evidence,
    by: By,
    succeeded: Outcome = None,
    override: Override = False,
    as_json: Json = False,
) -> None:
    """End a pending refund that its provider does not end.

    `--succeeded`: the customer has the money. `--failed`: it was never paid, and the merchant gets its part back.
    Another person approves it in the console. The provider is asked then: if it explicitly says the contrary, nothing
    happens.
    """
    act_request = settlement("refund.settle", reference, evidence, succeeded=succeeded, override=override)
    ask_for_approval(act_request, by, as_json=as_json)


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
    """Say which number gets a refund that waits because no provider states who paid (incident `payee_unconfirmed`).
    Another person approves it in the console, and the refund is sent there at once.
    """
    ask_for_approval(ActRequest("refund.confirm_payee", reference, {"phone": phone}, evidence), by, as_json=as_json)
