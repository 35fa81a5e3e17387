"""`guichet approval …`: money acts that wait for another person, who approves them in the console.

A command that moves money only asks for it (`ask_for_approval`).
"""

from typing import Annotated

import typer

from guichet.accounts import approvals, users
from guichet.audit_log import approval_requests
from guichet.back_office import money_acts
from guichet.cli.arguments import Json, actor, row_id
from guichet.cli.console import console, print_json, show_facts, show_rows
from guichet.cli.errors import CommandError
from guichet.cli.runner import run
from guichet.clock import Instant, iso
from guichet.context import AppContext
from guichet.db.engine import Database
from guichet.domain.accounts import User, normal_email
from guichet.domain.approvals import ActRequest, ApprovalRequest, MoneyAct
from guichet.domain.ids import ApprovalId
from guichet.domain.records import described

app = typer.Typer(no_args_is_help=True, help="Money acts that wait for another person, who approves in the console.")


@app.command("list", epilog="Example: `guichet approval list`")
def list_requests(as_json: Json = False) -> None:
    """Show the latest 200 requests, newest first, and what became of them."""

    async def work(ctx: AppContext) -> list[dict[str, object]]:
        now = ctx.clock.now()
        return [_described(request, now) for request in await approval_requests.latest(ctx.db)]

    rows = run(work)
    columns = {
        "id": "Id",
        "act": "Act",
        "subject": "Subject",
        "merchant_id": "Merchant",
        "status": "Status",
        "requested_by": "Asked by",
        "created_at": "Asked at",
        "expires_at": "Expires at",
        "decided_by": "Decided by",
    }
    show_rows("approvals", rows, columns, as_json=as_json)


@app.command(epilog="Example: `guichet approval show 3`")
def show(
    request: Annotated[int, typer.Argument(parser=row_id, metavar="ID", help="As `guichet approval list` shows it.")],
    as_json: Json = False,
) -> None:
    """Show one request: what is asked for, why, and who decided."""

    async def work(ctx: AppContext) -> dict[str, object]:
        approval = await approval_requests.get(ctx.db, ApprovalId(request))
        if approval is None:
            raise CommandError(f"There is no request {request}.")
        return _described(approval, ctx.clock.now())

    show_facts(run(work), as_json=as_json)


def ask_for_approval(act_request: ActRequest, by: str | None, *, as_json: bool) -> None:
    """Stores the request and says where it is approved; does at once what needs no second person."""
    if not act_request.reason:
        raise typer.BadParameter("--evidence is expected.")

    async def work(ctx: AppContext) -> tuple[ApprovalRequest | None, str]:
        requester = await _requester(ctx.db, by)
        if not money_acts.needs_two_people(ctx.settings, act_request):
            await approvals.do_alone(ctx, act_request, requester, actor().os_user)
            return None, ""
        request = await approvals.ask(ctx, act_request, requester, actor().os_user)
        return request, f"{ctx.settings.public_url}/admin/approvals/{request.id}"

    request, address = run(work)
    if request is None:
        show_facts({"done": act_request.act, "subject": act_request.subject}, as_json=as_json)
    elif as_json:
        print_json({"approval": request.id, "act": request.act, "expires_at": iso(request.expires_at), "at": address})
    else:
        console.print(
            f"Nothing is done yet. Request {request.id} waits until {iso(request.expires_at)} for another person, who "
            "approves it here:"
        )
        console.print(f"  {address}", soft_wrap=True)


async def _requester(db: Database, by: str | None) -> User:
    """The account of the staff that `--by` names. Raises CommandError."""
    if not await users.staff_in(db):
        raise CommandError(
            "Money moves only when two people of the staff agree, and the staff has no account yet: invite two with "
            "`guichet user invite EMAIL --staff --role admin --name NAME`."
        )
    email = normal_email(by or "")
    user = None if email is None else await users.by_email(db, email)
    if user is None or user.staff_role is None:
        raise CommandError("--by is the e-mail address of your account: `guichet user list` shows them.")
    return user


def _described(request: ApprovalRequest, now: Instant) -> dict[str, object]:
    names = (
        "id act subject merchant_id arguments reason status requested_by os_user created_at expires_at decided_by "
        "decided_at decision_reason"
    )
    return described(request, names.split(), arguments=request.act_request.arguments, status=request.status_at(now))


Outcome = Annotated[
    bool | None,
    typer.Option("--succeeded/--failed", help="What happened, as your evidence shows.", show_default=False),
]
Override = Annotated[bool, typer.Option("--override", help="Settle against the provider's explicit answer.")]


def settlement(act: MoneyAct, reference: str, evidence: str, *, succeeded: bool | None, override: bool) -> ActRequest:
    """A pending payment or refund is to be ended by hand."""
    if succeeded is None:
        raise typer.BadParameter("either --succeeded or --failed is expected.")
    return ActRequest(act, reference, {"succeeded": succeeded, "override": override}, evidence)
