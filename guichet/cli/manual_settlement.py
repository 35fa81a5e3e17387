"""What `guichet payment settle` and `guichet refund settle` share: their options, the act, and what they print."""

from typing import Annotated

import typer

from guichet.back_office.manual_settlement import Settled, settle_by_hand
from guichet.back_office.override_approvals import Decision
from guichet.bootstrap import Service
from guichet.cli.approvals import ask_for_approval, needs_approval
from guichet.cli.arguments import actor
from guichet.cli.console import CommandError, console, print_json
from guichet.cli.provider_accounts import load_providers
from guichet.cli.runner import load_settings, run
from guichet.domain.approvals import Arguments, MoneyAct, WantedAct
from guichet.domain.payments import Payment, Refund, SubjectType
from guichet.payments import repository
from guichet.refunds import repository as refund_repository

Outcome = Annotated[
    bool | None,
    typer.Option("--succeeded/--failed", help="What happened, as your evidence shows.", show_default=False),
]
Override = Annotated[
    bool,
    typer.Option("--override", help="Settle against the provider's explicit answer; a second person must approve it."),
]
Approver = Annotated[
    str | None, typer.Option("--approve", metavar="NAME", help="The second person, who approves an override.")
]


def settle(
    subject_type: SubjectType,
    reference: str,
    succeeded: bool | None,
    evidence: str | None,
    by: str | None,
    override: bool,
    approve: str | None,
    as_json: bool,
) -> None:
    """Ends a pending payment or refund by hand, and prints what was done."""
    decision = _decision(succeeded, evidence, by, override, approve)
    if needs_approval():
        if approve is not None:
            raise typer.BadParameter("--approve is for development: in production the console is where to approve.")
        act: MoneyAct = "payment.settle" if subject_type == "payment" else "refund.settle"
        arguments: Arguments = {"succeeded": decision.succeeded, "override": override}
        ask_for_approval(WantedAct(act, reference, arguments, decision.evidence), by, as_json=as_json)
        return
    providers = load_providers(load_settings())

    async def work(opened: Service) -> Settled:
        found: Payment | Refund | None
        if subject_type == "payment":
            found = await repository.find(opened.ctx.db, reference)
        else:
            found = await refund_repository.find(opened.ctx.db, reference)
        if found is None:
            raise CommandError(f"There is no {subject_type} {reference}.")
        return await settle_by_hand(opened.ctx, found, decision)

    _print(subject_type, run(work, "Asking the provider…", providers), as_json=as_json)


def _decision(
    succeeded: bool | None, evidence: str | None, by: str | None, override: bool, approve: str | None
) -> Decision:
    if succeeded is None:
        raise typer.BadParameter("either --succeeded or --failed is expected.")
    if approve is not None and not override:
        raise typer.BadParameter("--approve belongs to --override.")
    if approve is None and (by is None or evidence is None):
        raise typer.BadParameter("--by and --evidence are expected.")
    return Decision(
        succeeded=succeeded,
        evidence=evidence or "",
        actor=actor(by) if by else None,
        override=override,
        approver=actor(approve) if approve else None,
    )


def _print(subject_type: SubjectType, done: Settled, *, as_json: bool) -> None:
    subject = done.subject
    if as_json:
        print_json(
            {
                "reference": subject.reference,
                "status": subject.status,
                "provider_says": done.answer,
                "approval_needed": done.approval_needed,
            }
        )
    elif done.approval_needed:
        console.print(
            f"Nothing is settled yet (the provider says: {done.answer}). Within a day a second person must run this "
            "command with --override --approve NAME."
        )
    else:
        console.print(f"The {subject_type} {subject.reference} is {subject.status} (the provider says: {done.answer}).")
