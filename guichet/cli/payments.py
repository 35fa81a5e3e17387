"""`guichet payment …`: what a person does with one payment."""

import typer

from guichet.cli.approvals import Outcome, Override, ask_for_approval, settlement
from guichet.cli.arguments import EXAMPLE_REFERENCE, By, Evidence, Json, Reference

app = typer.Typer(no_args_is_help=True, help="What a person does with one payment.")


@app.command(epilog=f'Example: `guichet payment settle {EXAMPLE_REFERENCE} --failed --evidence "ticket 4711" --by Awa`')
def settle(
    reference: Reference,
    evidence: Evidence,
    by: By,
    succeeded: Outcome = None,
    override: Override = False,
    as_json: Json = False,
) -> None:
    """End a pending payment that its provider does not end.

    Another person approves it in the console. The provider is asked then: if it explicitly says the contrary, nothing
    happens. The merchant gets the same webhook as ever, and the audit log keeps who decided and why.
    """
    act_request = settlement("payment.settle", reference, evidence, succeeded=succeeded, override=override)
    ask_for_approval(act_request, by, as_json=as_json)
