"""`guichet replay`: a delivery of the test environment once more, or the last one about a payment. Without
`--forward-to` it is `guichet delivery resend` for a developer: test deliveries only, and nobody has to be named. With
it, the webhook goes to a developer's own server, and what it answers is shown."""

import time
from collections.abc import Mapping
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer
from rich.text import Text

from guichet.cli.arguments import EXAMPLE_REFERENCE, DeliveryOrPayment, Json, OptionalBy
from guichet.cli.console import console, print_json
from guichet.cli.deliveries import find_delivery_or_last, print_resent, resend_one
from guichet.cli.errors import CommandError
from guichet.cli.runner import run
from guichet.clock import SECOND
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.events import ANSWER_TIMEOUT, Delivery
from guichet.domain.records import Record
from guichet.http_client import HttpClient, HttpClientError, Lost
from guichet.merchants import repository as merchants
from guichet.printable import printable
from guichet.webhooks import events
from guichet.webhooks.sender import signed_headers

#: Bytes of an answer that are shown.
_MAX_ANSWER_BYTES: Final = 200


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise typer.BadParameter("an http or https address is expected, such as http://localhost:3000/hook.")
    return text


ForwardTo = Annotated[
    str | None,
    typer.Option("--forward-to", parser=_address, metavar="URL", help="Your own server; http and localhost will do."),
]


class Forwarded(Record, frozen=True):
    """What a developer's server did with one event. `status`: None when it gave none; then `text` says why, otherwise
    it is the beginning of the body."""

    status: int | None
    milliseconds: int
    text: str

    @property
    def acknowledged(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def line(self) -> Text:
        status = "no answer" if self.status is None else str(self.status)
        line = Text.assemble("          → ", (status, "green" if self.acknowledged else "red"))
        return line.append(f"  {self.milliseconds} ms  {printable(self.text)}".rstrip())


def forwarding_client() -> HttpClient:
    """Reaches this machine too, with certificates that nobody verifies there."""
    return HttpClient(loopback=True)


async def forward(client: HttpClient, url: str, headers: Mapping[str, str], body: bytes) -> Forwarded:
    """Posts an event once, to an address that the developer chose. Never raises for what the server does."""
    began = time.perf_counter()
    status: int | None
    try:
        response = await client.request(
            "POST", url, headers=headers, body=body, timeout=ANSWER_TIMEOUT, guarded=False, max_bytes=_MAX_ANSWER_BYTES
        )
        status, text = response.status, response.body.decode(errors="replace")
    except Lost as error:
        status, text = error.status, str(error)
    except HttpClientError as error:
        status, text = None, str(error)
    return Forwarded(status, round((time.perf_counter() - began) * 1000), text)


app = typer.Typer()


@app.command(epilog=f"Example: `guichet replay {EXAMPLE_REFERENCE} --forward-to http://localhost:3000/hook`")
def replay(
    reference: DeliveryOrPayment,
    forward_to: ForwardTo = None,
    by: OptionalBy = None,
    as_json: Json = False,
) -> None:
    """Send a webhook of the test environment again: to its address, by the worker, or with `--forward-to` to your own
    server at once, which changes nothing in the log. Id and body stay, the signature is new."""

    async def work(ctx: AppContext) -> Delivery | Forwarded:
        delivery = await find_delivery_or_last(ctx.db, reference)
        if delivery.env != "test":
            raise CommandError("This is a live webhook: `guichet delivery resend` sends those again.")
        return (
            await resend_one(ctx.db, ctx.clock, delivery, by)
            if forward_to is None
            else await _forward(ctx, delivery, forward_to)
        )

    result = run(work)
    if isinstance(result, Delivery):
        print_resent(result, as_json=as_json)
    elif as_json:
        facts = {"status": result.status, "milliseconds": result.milliseconds, "text": result.text}
        print_json({"id": reference, "url": forward_to, **facts})
    else:
        console.print(f"{reference} was sent to {forward_to}", soft_wrap=True)
        console.print(result.line, soft_wrap=True)


async def _forward(ctx: AppContext, delivery: Delivery, url: str) -> Forwarded:
    endpoint = await merchants.endpoint(ctx.db, delivery.merchant_id, delivery.env)
    body = require(await events.body_of(ctx.db, delivery.id)).encode()
    headers = signed_headers(delivery, body, [ctx.vault.decrypt(endpoint.secret)], ctx.clock.now() // SECOND)
    client = forwarding_client()
    try:
        return await forward(client, url, headers, body)
    finally:
        await client.aclose()
