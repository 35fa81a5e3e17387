"""`guichet refund …`: what a person does with one refund."""

import typer

from guichet.cli import manual_settlement
from guichet.cli.arguments import EXAMPLE_REFERENCE, Json, OptionalBy, OptionalEvidence, Reference
from guichet.cli.manual_settlement import Approver, Outcome, Override

app = typer.Typer(no_args_is_help=True, help="What a person does with one refund.")


def register(commands: typer.Typer) -> None:
    commands.add_typer(app, name="refund")


@app.callback()
def _group() -> None:
    """What a person does with one refund."""


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
