"""`guichet trigger`: events in a merchant's test environment, without writing a request."""

from typing import Annotated, Final, get_args

import typer

from guichet.cli.arguments import Json
from guichet.cli.console import console, print_json
from guichet.cli.errors import CommandError
from guichet.cli.runner import run
from guichet.cli.sandbox_merchant import OfMerchant, chosen_merchant
from guichet.context import AppContext
from guichet.domain.errors import GuichetError
from guichet.domain.events import EventName
from guichet.domain.ids import MerchantId
from guichet.merchants import repository as merchants
from guichet.sandbox.events import cause

_MOST: Final = 1000

app = typer.Typer()


@app.command(epilog="Example: `guichet trigger payment.succeeded --count 50`")
def trigger(
    event: Annotated[EventName, typer.Argument(metavar="EVENT", help=f"One of {', '.join(get_args(EventName))}.")],
    count: Annotated[int, typer.Option(help="How many times.", min=1, max=_MOST)] = 1,
    merchant: OfMerchant = None,
    as_json: Json = False,
) -> None:
    """Make a payment, refund or dispute in a merchant's test environment that causes an event.

    They are made as the API makes them; the worker of a running server sends the signed webhooks. An event that follows
    from another is told after it.
    """

    async def work(ctx: AppContext) -> tuple[MerchantId, list[str], str | None]:
        of = await chosen_merchant(ctx, merchant)
        try:
            references = [await cause(ctx, of, event) for _ in range(count)]
        except GuichetError as error:
            raise CommandError(f"The API refuses it: {error.message}") from error
        return of.id, references, (await merchants.endpoint(ctx.db, of.id, "test")).url

    of, references, url = run(work)
    if as_json:
        print_json({"merchant_id": of, "event": event, "references": references, "url": url})
        return
    for reference in references:
        console.print(f"{event}  {reference}", soft_wrap=True)
    to = "nowhere yet: `guichet listen --configure` receives them here" if url is None else url
    console.print(f"{count} × {event} for merchant {of}, test environment. Webhooks go to {to}.", soft_wrap=True)
