"""`guichet listen`: a webhook receiver on this machine that shows what a merchant receives."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

import typer
from rich.text import Text
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from guichet.bootstrap import ensure_schema, service
from guichet.cli.console import console
from guichet.cli.demo import NAME, Demo, demo_merchant, refuse_in_production
from guichet.cli.runner import load_settings, name_database, run_async
from guichet.clock import SECOND, Clock, SystemClock, to_datetime
from guichet.printable import printable
from guichet.server.http_server import Server
from guichet.server.processes import on_stop
from guichet.server.sockets import bind_socket, url_of
from guichet.settings import Settings
from guichet.webhooks import endpoints
from guichet.webhooks.signing import verify


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: `guichet listen --configure`")(listen)


def listen(
    port: Annotated[int, typer.Option(help="Port to listen on, at 127.0.0.1.", min=0, max=65535)] = 9000,
    secret: Annotated[
        str | None, typer.Option(metavar="whsec_…", help="Signing secret; by default the demo merchant's.")
    ] = None,
    configure: Annotated[
        bool, typer.Option("--configure", help="Send the demo merchant's test webhooks here from now on.")
    ] = False,
) -> None:
    """Receive webhooks on this machine: show each event and check its signature. Development only."""

    settings = load_settings()
    refuse_in_production(settings)

    async def main() -> None:
        with bind_socket("127.0.0.1", port) as listener:
            address = url_of(listener) + "/"
            known_secret = secret
            if known_secret is None or configure:
                found = await _demo(settings, address if configure else None)
                known_secret = secret or found.webhook_secret
            receiver = Receiver(known_secret, SystemClock())
            server = Server(Starlette(routes=[Route("/{path:path}", receiver.receive, methods=["POST"])]))
            on_stop(server.handle_exit)
            whose = f"The test webhooks of {NAME}" if configure else "Webhooks"
            console.print(f"{whose} sent to {address} are shown here. Ctrl-C stops it.", soft_wrap=True)
            await server.serve([listener])

    run_async(main())


async def _demo(settings: Settings, address: str | None) -> Demo:
    """The demo merchant. Its test webhooks go to `address` from now on, unless it is None."""
    name_database(settings)
    await ensure_schema(settings, create=True)
    async with service(settings) as opened:
        ctx = opened.ctx
        found = await demo_merchant(ctx)
        if address is not None:
            now = ctx.clock.now()
            await endpoints.configure(ctx.db, ctx.vault, found.merchant_id, "test", address, now, rotate=False)
        return found


class Receiver:
    """Does what a merchant's server should do: checks the signature first, and recognises a repeated event."""

    def __init__(self, secret: str, clock: Clock) -> None:
        self._secret = secret
        self._clock = clock
        self._seen: set[str] = set()

    async def receive(self, request: Request) -> Response:
        body = await request.body()
        signature = request.headers.get("x-service-signature", "")
        now = self._clock.now()
        line = Text(f"{to_datetime(now).astimezone():%H:%M:%S}  ", "dim")
        if not verify(self._secret, signature, body, now // SECOND):
            console.print(line + Text("✗ refused: the signature is not ours", "red"))
            return Response(status_code=401)
        event = json.loads(body, parse_float=Decimal)
        line.append_text(_summary(event))
        line.append("  ✓ signature", "green")
        if event["id"] in self._seen:
            line.append("  (again)", "dim")
        self._seen.add(event["id"])
        console.print(line, soft_wrap=True)
        return Response(status_code=200)


def _summary(event: Mapping[str, Any]) -> Text:
    """Event name, reference, status and amount; for `webhook.test`, its message."""
    data = event["data"]
    if "reference" not in data:
        return Text.assemble((printable(event["event"]), "bold"), printable(f"  {data.get('message', '')}"))
    facts = f"  {data['reference']}  {data['status']}  {data['amount']} {data['currency']}"
    return Text.assemble((printable(f"{event['event']:<17}"), "bold"), printable(facts))
