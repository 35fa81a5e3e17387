"""`guichet incidents`: what a person must look into."""

from dataclasses import dataclass
from typing import Annotated

import typer

from guichet.back_office import incident_acts
from guichet.bootstrap import Service
from guichet.cli.arguments import Json, OptionalBy, actor, row_id
from guichet.cli.console import print_json, print_table
from guichet.cli.errors import CommandError
from guichet.cli.runner import run
from guichet.clock import Instant, iso
from guichet.domain.ids import IncidentId
from guichet.incidents import repository
from guichet.provider_callbacks import unmatched as unmatched_callbacks


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: `guichet incidents` then `guichet incidents --close 3`")(incidents)


@dataclass(frozen=True, slots=True)
class _Found:
    """Rows as `--json` prints them."""

    incidents: list[dict[str, object]]
    unmatched_callbacks: list[dict[str, object]]


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

    async def work(opened: Service) -> _Found:
        db = opened.ctx.db
        if close is not None and not await incident_acts.close(
            opened.ctx.db, opened.ctx.clock, IncidentId(close), actor(by)
        ):
            raise CommandError(f"There is no open incident {close}.")
        return _Found(
            [_incident(each) for each in await repository.still_open(db)],
            [_callback(*each) for each in await unmatched_callbacks.list_latest(db)],
        )

    found = run(work)
    if as_json:
        print_json({"incidents": found.incidents, "unmatched_callbacks": found.unmatched_callbacks})
        return
    columns = ("Id", "Merchant", "Env", "Kind", "Of a", "Reference", "Account", "Detail", "Times", "Opened")
    print_table(columns, [tuple(row.values())[: len(columns)] for row in found.incidents])
    if found.unmatched_callbacks:
        callback_columns = ("Id", "Account", "Path", "Reason", "Received")
        print_table(callback_columns, [tuple(row.values()) for row in found.unmatched_callbacks])


def _incident(incident: repository.Incident) -> dict[str, object]:
    return {
        "id": incident.id,
        "merchant_id": incident.merchant_id,
        "env": incident.env,
        "kind": incident.kind,
        "subject_type": incident.subject_type,
        "reference": incident.reference,
        "provider_account": incident.provider_account,
        "detail": str(incident.detail),
        "occurrences": incident.occurrences,
        "opened_at": iso(incident.opened_at),
        "code": incident.detail.code,
        "facts": incident.detail.facts,
    }


def _callback(row_id: int, account: str, path: str, reason: str, received_at: Instant) -> dict[str, object]:
    return {"id": row_id, "provider_account": account, "path": path, "reason": reason, "received_at": iso(received_at)}
