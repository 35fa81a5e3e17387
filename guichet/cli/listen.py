"""`guichet listen`: a webhook receiver on this machine that shows what a merchant receives, and passes it on to a
developer's own server."""

import json
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, Final

import typer
from rich.text import Text
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from guichet.bootstrap import ensure_schema, service
from guichet.cli.console import console
from guichet.cli.demo import refuse_in_production
from guichet.cli.replay import Forwarded, ForwardTo, forward, forwarding_client
from guichet.cli.runner import load_settings, name_database, run_async
from guichet.clock import SECOND, Clock, SystemClock, to_datetime
from guichet.printable import printable
from guichet.server.http_server import Server
from guichet.server.listener import bind_socket, url_of
from guichet.server.processes import on_stop
from guichet.settings import Settings
from guichet.webhooks import endpoints
from guichet.webhooks.sender import verify
from guichet_demo.merchant import NAME, Demo, demo_merchant

#: Headers that belong to the connection to us, not to the event.
_OF_THE_CONNECTION: Final = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "accept", "accept-encoding"}
)

app = typer.Typer()


@app.command(
    epilog="Examples: `guichet listen --configure`, "
    "`guichet listen --configure --forward-to http://localhost:3000/hook`"
)
def listen(
    port: Annotated[int, typer.Option(help="Port to listen on, at 127.0.0.1.", min=0, max=65535)] = 9000,
    secret: Annotated[
        str | None, typer.Option(metavar="whsec_…", help="Signing secret; by default the demo merchant's.")
    ] = None,
    configure: Annotated[
        bool, typer.Option("--configure", help="Send the demo merchant's test webhooks here from now on.")
    ] = False,
    forward_to: ForwardTo = None,
) -> None:
    """Receive webhooks on this machine: show each event and check its signature. Development only.

    With `--forward-to` each event goes on to your own server, with the same bytes and headers. Its answer is shown, and
    given back as the answer to the webhook: what your server refuses is tried again.
    """

    settings = load_settings()
    refuse_in_production(settings)

    async def main() -> None:
        with bind_socket("127.0.0.1", port) as listener:
            address = url_of(listener) + "/"
            known_secret = secret
            if known_secret is None or configure:
                demo = await _demo(settings, address if configure else None)
                known_secret = secret or demo.webhook_secret
            client = forwarding_client() if forward_to else None
            pass_on = partial(forward, client, forward_to) if client and forward_to else None
            receiver = Receiver(known_secret, SystemClock(), pass_on)
            server = Server(Starlette(routes=[Route("/{path:path}", receiver.receive, methods=["POST"])]))
            on_stop(server.handle_exit)
            webhooks = f"The test webhooks of {NAME}" if configure else "Webhooks"
            passed_on = f" and passed on to {forward_to}" if forward_to else ""
            console.print(f"{webhooks} sent to {address} are shown here{passed_on}. Ctrl-C stops it.", soft_wrap=True)
            try:
                await server.serve([listener])
            finally:
                if client is not None:
                    await client.aclose()

    run_async(main())


async def _demo(settings: Settings, address: str | None) -> Demo:
    """The demo merchant. Its test webhooks go to `address` from now on, unless it is None."""
    name_database(settings)
    await ensure_schema(settings, create=True)
    async with service(settings) as opened:
        ctx = opened.ctx
        demo = await demo_merchant(ctx)
        if address is not None:
            now = ctx.clock.now()
            await endpoints.configure(ctx.db, ctx.vault, demo.merchant_id, "test", address, now, rotate=False)
        return demo


#: Of the headers and the body of an event.
Forward = Callable[[Mapping[str, str], bytes], Awaitable[Forwarded]]


class Receiver:
    """Does what a merchant's server should do: checks the signature first, and recognises a repeated event."""

    def __init__(self, secret: str, clock: Clock, forward: Forward | None) -> None:
        """`forward`: sends each event on to the developer's own server."""
        self._secret = secret
        self._clock = clock
        self._forward = forward
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
        return Response(status_code=await self._pass_on(request, body))

    async def _pass_on(self, request: Request, body: bytes) -> int:
        """The status to answer: that of the developer's server, or 502 if it gave none; 200 without such a server."""
        if self._forward is None:
            return 200
        headers = {name.title(): value for name, value in request.headers.items() if name not in _OF_THE_CONNECTION}
        forwarded = await self._forward(headers, body)
        console.print(forwarded.line, soft_wrap=True)
        return forwarded.status or 502


def _summary(event: Mapping[str, Any]) -> Text:
    """Event name, reference, status and amount; for `webhook.test`, its message."""
    data = event["data"]
    if "reference" not in data:
        return Text.assemble((printable(event["event"]), "bold"), printable(f"  {data.get('message', '')}"))
    facts = f"  {data['reference']}  {data['status']}  {data['amount']} {data['currency']}"
    return Text.assemble((printable(f"{event['event']:<17}"), "bold"), printable(facts))
