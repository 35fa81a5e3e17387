"""`guichet replay`: a delivery of the test environment once more. Without `--forward-to` it is `guichet delivery
resend` for a developer: test deliveries only, and nobody has to be named."""

import typer

from guichet.bootstrap import Service
from guichet.cli.arguments import EXAMPLE_REFERENCE, DeliveryId, Json, OptionalBy
from guichet.cli.console import console, print_json
from guichet.cli.deliveries import find_delivery, print_resent, resend_one
from guichet.cli.errors import CommandError
from guichet.cli.forwarding import Forwarded, ForwardTo, forward, forwarding_client
from guichet.cli.runner import run
from guichet.clock import SECOND
from guichet.context import AppContext
from guichet.domain.events import Delivery
from guichet.merchants import repository as merchants
from guichet.webhooks.sender import signed_headers


def register(app: typer.Typer) -> None:
    app.command(epilog=f"Example: `guichet replay {EXAMPLE_REFERENCE} --forward-to http://localhost:3000/hook`")(replay)


def replay(
    delivery_id: DeliveryId,
    forward_to: ForwardTo = None,
    by: OptionalBy = None,
    as_json: Json = False,
) -> None:
    """Send a webhook of the test environment again: to its address, by the worker, or with `--forward-to` to your own
    server at once, which changes nothing in the log. Id and body stay, the signature is new."""

    async def work(opened: Service) -> Delivery | Forwarded:
        ctx = opened.ctx
        delivery = await find_delivery(ctx.db, delivery_id)
        if delivery.env != "test":
            raise CommandError("This is a live webhook: `guichet delivery resend` sends those again.")
        return (
            await resend_one(ctx.db, ctx.clock, delivery, by)
            if forward_to is None
            else await _forward(ctx, delivery, forward_to)
        )

    done = run(work)
    if isinstance(done, Delivery):
        print_resent(done, as_json=as_json)
    elif as_json:
        facts = {"status": done.status, "milliseconds": done.milliseconds, "text": done.text}
        print_json({"id": delivery_id, "url": forward_to, **facts})
    else:
        console.print(f"{delivery_id} was sent to {forward_to}", soft_wrap=True)
        console.print(done.line, soft_wrap=True)


async def _forward(ctx: AppContext, delivery: Delivery, url: str) -> Forwarded:
    endpoint = await merchants.endpoint(ctx.db, delivery.merchant_id, delivery.env)
    body = delivery.body.encode()
    headers = signed_headers(delivery, body, ctx.vault.decrypt(endpoint.secret), ctx.clock.now() // SECOND)
    client = forwarding_client()
    try:
        return await forward(client, url, headers, body)
    finally:
        await client.aclose()
