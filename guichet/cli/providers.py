"""`guichet operators check`, `guichet incidents`, `guichet simulator`: the live side of the service."""

import asyncio
from typing import Annotated

import typer
import uvicorn

from guichet.bootstrap import Service, live_providers, simulator
from guichet.cli.support import errors, people, print_json, print_table, refuse, run, settings_or_refusal
from guichet.clock import SystemClock, iso
from guichet.http_client import HttpClient
from guichet.payments import incidents as rows
from guichet.providers.providers_file import ProvidersConfig
from guichet.settings import Settings, SettingsError, with_development_key

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="The operators' connections and routes.", no_args_is_help=True)
    group.command("check", epilog="Example: `guichet operators check`")(check)
    app.add_typer(group, name="operators")
    app.command(epilog="Example: `guichet incidents` then `guichet incidents --close 3`")(incidents)
    app.command("simulator", epilog="Example: `guichet simulator --port 8900`")(simulate)


def check(as_json: Json = False) -> None:
    """Ask each connection something harmless, and show which operator codes have a route."""
    settings = with_development_key(settings_or_refusal())
    operators = _operators(settings)
    with errors.status("Asking the operators…"):
        answers = asyncio.run(_probe(settings, operators))
    routes = {code: list(names) for code, names in operators.routes.items()}
    found = [
        {"connection": name, "family": each.provider, "base_url": each.base_url, "answer": answers[name]}
        for name, each in operators.accounts.items()
    ]
    if as_json:
        print_json({"connections": found, "routes": routes})
    else:
        print_table(("Connection", "Family", "Address", "Answer"), [tuple(each.values()) for each in found])
        print_table(("Operator", "Routes, in order"), [(code, ", ".join(names)) for code, names in routes.items()])
    if any(answer != "ok" for answer in answers.values()):
        raise typer.Exit(1)


def incidents(
    close: Annotated[int | None, typer.Option(help="Close this incident: a person dealt with it.")] = None,
    as_json: Json = False,
) -> None:
    """Show what a person must look at: contradictions, payments nobody can settle, notifications that match nothing."""

    async def work(service: Service) -> tuple[list[rows.Incident], list[tuple[int, str, str, str, int]]]:
        db = service.ctx.db
        if close is not None and not await rows.close(db, close, service.ctx.clock.now()):
            refuse(f"There is no open incident {close}.")
        return await rows.still_open(db), await rows.unmatched_callbacks(db)

    found, unmatched_callbacks = run(work)
    listed = [
        {
            "id": each.id,
            "merchant": each.merchant_id,
            "kind": each.kind,
            each.subject: each.reference,
            "connection": each.connection,
            "detail": each.detail,
            "seen": each.seen,
            "since": iso(each.opened_at),
        }
        for each in found
    ]
    stray = [
        {"id": number, "connection": name, "path": path, "reason": reason, "received_at": iso(at)}
        for number, name, path, reason, at in unmatched_callbacks
    ]
    if as_json:
        print_json({"incidents": listed, "stray_callbacks": stray})
        return
    print_table(
        ("Id", "Merchant", "Kind", "Reference", "Connection", "Detail", "Seen", "Since"),
        [(e.id, e.merchant_id, e.kind, e.reference, e.connection, e.detail, e.seen, iso(e.opened_at)) for e in found],
    )
    if stray:
        print_table(("Id", "Connection", "Path", "Reason", "Received"), [tuple(each.values()) for each in stray])


def simulate(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8900,
) -> None:
    """Serve the operators' simulator alone, with its simulated phone at /simulator/phone."""
    settings = settings_or_refusal()
    app = simulator(settings, SystemClock(), _operators(settings), f"http://{host}:{port}/simulator")
    if app is None:
        refuse("The production profile does not serve the simulator unless GUICHET_ALLOW_SIMULATOR is yes.")
    people.print(f"Simulated phone: http://{host}:{port}/simulator/phone")
    uvicorn.run(app, host=host, port=port, log_config=None, access_log=False)


async def _probe(settings: Settings, operators: ProvidersConfig) -> dict[str, str]:
    http_client = HttpClient(ca_file=settings.egress_ca_file, loopback=settings.development)
    try:
        registry = operators.registry(SystemClock(), http_client)
        names = list(operators.accounts)
        answers = await asyncio.gather(*(registry.provider(name).probe() for name in names))
        return dict(zip(names, answers, strict=True))
    finally:
        await http_client.aclose()


def _operators(settings: Settings) -> ProvidersConfig:
    try:
        return live_providers(settings)
    except SettingsError as error:
        refuse(str(error))
