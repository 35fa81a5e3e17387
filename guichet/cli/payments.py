"""`guichet payment …`: what a person does with one payment."""

import typer

from guichet.cli import manual_settlement
from guichet.cli.arguments import EXAMPLE_REFERENCE, Json, OptionalBy, OptionalEvidence, Reference
from guichet.cli.manual_settlement import Approver, Outcome, Override

app = typer.Typer(no_args_is_help=True, help="What a person does with one payment.")


def register(commands: typer.Typer) -> None:
    commands.add_typer(app, name="payment")


@app.callback()
def _group() -> None:
    """What a person does with one payment."""


@app.command(epilog=f'Example: `guichet payment settle {EXAMPLE_REFERENCE} --failed --evidence "ticket 4711" --by Awa`')
def settle(
    reference: Reference,
    succeeded: Outcome = None,
    evidence: OptionalEvidence = None,
    by: OptionalBy = None,
    override: Override = False,
    approve: Approver = None,
    as_json: Json = False,
) -> None:
    """End a pending payment that its provider does not end.

    The provider is asked first: if it explicitly says the contrary, nothing happens. The merchant gets the same webhook
    as ever, and the audit log keeps who decided and why.
    """
    manual_settlement.settle("payment", reference, succeeded, evidence, by, override, approve, as_json)
