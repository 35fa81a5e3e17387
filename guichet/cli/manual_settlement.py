"""What `guichet payment settle` and `guichet refund settle` share: their options, and the request."""

from typing import Annotated

import typer

from guichet.cli.approvals import ask_for_approval
from guichet.domain.approvals import MoneyAct, WantedAct

Outcome = Annotated[
    bool | None,
    typer.Option("--succeeded/--failed", help="What happened, as your evidence shows.", show_default=False),
]
Override = Annotated[bool, typer.Option("--override", help="Settle against the provider's explicit answer.")]


def ask_to_settle(
    act: MoneyAct,
    reference: str,
    succeeded: bool | None,
    evidence: str,
    by: str,
    override: bool,
    as_json: bool,
) -> None:
    """Asks that a pending payment or refund is ended by hand."""
    if succeeded is None:
        raise typer.BadParameter("either --succeeded or --failed is expected.")
    wanted = WantedAct(act, reference, {"succeeded": succeeded, "override": override}, evidence)
    ask_for_approval(wanted, by, as_json=as_json)
