"""`guichet incidents`: what a person must look into."""

from typing import Annotated

import typer

from guichet.back_office import incident_acts
from guichet.cli.arguments import Json, OptionalBy, actor, row_id
from guichet.cli.console import print_json, print_table
from guichet.cli.errors import CommandError
from guichet.cli.runner import run
from guichet.clock import iso
from guichet.context import AppContext
from guichet.domain.ids import IncidentId
from guichet.domain.records import described
from guichet.incidents import repository
from guichet.provider_callbacks import unmatched as unmatched_callbacks

app = typer.Typer()


@app.command(epilog="Example: `guichet incidents` then `guichet incidents --close 3`")
def incidents(
    close: Annotated[
        int | None, typer.Option(parser=row_id, metavar="ID", help="Close this incident: a person dealt with it.")
    ] = None,
    by: OptionalBy = None,
    as_json: Json = False,
) -> None:
    """Show open incidents (amounts that differ from ours, payments that stay pending for days) and callbacks that match
    no payment or refund.
    """

    async def work(ctx: AppContext) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
        db, clock = ctx.db, ctx.clock
        if close is not None and not await incident_acts.close(db, clock, IncidentId(close), actor(by)):
            raise CommandError(f"There is no open incident {close}.")
        rows = [_incident(incident) for incident in await repository.still_open(db)]
        callbacks = [
            {"id": number, "provider_account": account, "path": path, "reason": reason, "received_at": iso(received_at)}
            for number, account, path, reason, received_at in await unmatched_callbacks.list_latest(db)
        ]
        return rows, callbacks

    rows, callbacks = run(work)
    if as_json:
        print_json({"incidents": rows, "unmatched_callbacks": callbacks})
        return
    columns = ("Id", "Merchant", "Env", "Kind", "Of a", "Reference", "Account", "Detail", "Times", "Opened")
    print_table(columns, [tuple(row.values())[: len(columns)] for row in rows])
    if callbacks:
        print_table(("Id", "Account", "Path", "Reason", "Received"), [tuple(row.values()) for row in callbacks])


def _incident(incident: repository.Incident) -> dict[str, object]:
    names = "id merchant_id env kind subject_type reference provider_account detail occurrences opened_at"
    fields = described(incident, names.split(), detail=str(incident.detail))
    return {**fields, "code": incident.detail.code, "facts": incident.detail.facts}
