"""`guichet treasury …`: our own money at providers and banks, and what people record of it."""

from typing import Annotated, Final

import typer

from guichet.cli.approvals import ask_for_approval
from guichet.cli.arguments import EXAMPLE_REFERENCE, By, Evidence, Json, actor
from guichet.cli.arguments import Reference as MovementReference
from guichet.cli.console import show_facts, show_rows
from guichet.cli.runner import run
from guichet.clock import SystemClock
from guichet.context import AppContext
from guichet.db.references import new_reference
from guichet.domain.approvals import ActRequest
from guichet.domain.audit_log import FactName
from guichet.domain.money import CURRENCIES, parse_typed, plain
from guichet.domain.records import described
from guichet.domain.treasury import RECORDED_KINDS, STATEMENT, MovementStatus, TreasuryMovement
from guichet.treasury import movements, readings, repository
from guichet.treasury.position import Position, positions
from guichet.treasury.readings import Reading

app = typer.Typer(no_args_is_help=True, help="Our own money at providers and banks.")

_COLUMNS: Final = {
    "reference": "Movement",
    "kind": "Kind",
    "amount": "Amount",
    "currency": "Currency",
    "destination": "From",
    "source": "To",
    "status": "Status",
    "recorded_at": "Recorded",
    "ended_at": "Ended",
}
_READING_COLUMNS: Final = {
    "place": "Place",
    "source": "Source",
    "stated": "Stated",
    "ledger": "Ledger",
    "difference": "Difference",
    "read_at": "Read",
}
_POSITION_COLUMNS: Final = {
    "currency": "Currency",
    "what": "What",
    "name": "Account",
    "wallet": "Wallet",
    "amount": "Amount",
}


@app.command(epilog="Example: `guichet treasury show`")
def show(as_json: Json = False) -> None:
    """Show where our money is, by provider wallet and bank, and whose it is: merchants', held, ours."""
    rows = [row for position in run(lambda ctx: positions(ctx.db)) for row in _rows(position)]
    show_rows("positions", rows, _POSITION_COLUMNS, as_json=as_json)


def _rows(position: Position) -> list[dict[str, object]]:
    places: list[tuple[str, str, str, int]] = [
        (place.what, place.name, place.wallet, amount) for place, amount in position.places()
    ]
    sides = ("total", position.total), ("owed", position.owed), ("held", position.held), ("ours", position.ours)
    places += [(name, "", "", amount) for name, amount in sides]
    return [
        {"currency": position.currency, "what": what, "name": name, "wallet": wallet, "amount": plain(amount)}
        for what, name, wallet, amount in places
    ]


@app.command(epilog="Example: `guichet treasury differences`")
def differences(as_json: Json = False) -> None:
    """Show what each place was last said to hold, what the ledger says, and what differs beyond what is in flight."""

    async def work(ctx: AppContext) -> list[Reading]:
        return await readings.latest(ctx.db, ctx.clock.now())

    amounts = ("stated", "ledger", "difference")
    rows = [
        described(reading, _READING_COLUMNS, **{name: plain(getattr(reading, name)) for name in amounts})
        for reading in run(work)
    ]
    show_rows("readings", rows, _READING_COLUMNS, as_json=as_json)


@app.command("list", epilog="Example: `guichet treasury list`")
def list_latest(as_json: Json = False) -> None:
    """Show the latest 200 recorded movements, newest first."""
    rows = [_described(movement) for movement in run(lambda ctx: repository.latest(ctx.db))]
    show_rows("movements", rows, _COLUMNS, as_json=as_json)


@app.command(
    epilog="Example: `guichet treasury record transfer --from mtn_benin:collection --to bank:ecobank --amount 500000 "
    '--currency XOF --evidence "transfer order 12" --by awa@example.com`'
)
def record(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="|".join((*RECORDED_KINDS, STATEMENT)), help="What moved, or what a statement shows `--to` hold."
        ),
    ],
    amount: Annotated[str, typer.Option(metavar="AMOUNT", help="In the main unit of the currency.")],
    currency: Annotated[str, typer.Option(metavar="|".join(CURRENCIES), help="Of both places.")],
    evidence: Evidence,
    by: By,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="PLACE", help="Which place shrinks: see `--to`.")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="Which place grows: `ACCOUNT` or `ACCOUNT:WALLET`, or `bank:NAME`."),
    ] = None,
    announced: Annotated[
        bool, typer.Option("--announced", help="Sent, but not there yet: posted by `guichet treasury arrived`.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Record what moved our own money without a payment. Another person approves it in the console, unless the amount
    is at most `GUICHET_TREASURY_ONE_PERSON_BELOW`.
    """
    if (hundredths := parse_typed(amount, 2)) is None:
        raise typer.BadParameter("--amount: a number is expected, such as 5000 or 12.50.")
    arguments: dict[FactName, str | bool | int] = {
        "kind": kind,
        "amount": hundredths,
        "currency": currency,
        "from": from_ or "",
        "to": to or "",
        "announced": announced,
    }
    act_request = ActRequest("treasury.record", new_reference(SystemClock().now()), arguments, evidence)
    ask_for_approval(act_request, by, as_json=as_json)


@app.command(epilog=f'Example: `guichet treasury arrived {EXAMPLE_REFERENCE} --evidence "bank statement" --by Awa`')
def arrived(reference: MovementReference, evidence: Evidence, by: By, as_json: Json = False) -> None:
    """An announced movement is where it was sent to: it is posted."""
    _end(reference, "posted", evidence, by, as_json=as_json)


@app.command(epilog=f'Example: `guichet treasury cancel {EXAMPLE_REFERENCE} --evidence "returned" --by Awa`')
def cancel(reference: MovementReference, evidence: Evidence, by: By, as_json: Json = False) -> None:
    """An announced movement never left, or came back."""
    _end(reference, "cancelled", evidence, by, as_json=as_json)


def _end(reference: str, status: MovementStatus, evidence: str, by: str, *, as_json: bool) -> None:
    ended = run(lambda ctx: movements.end(ctx, reference, status, actor(by), evidence))
    show_facts(_described(ended), as_json=as_json)


def _described(movement: TreasuryMovement) -> dict[str, object]:
    return described(movement, _COLUMNS, amount=plain(movement.amount))
