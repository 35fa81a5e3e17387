"""`guichet clock …`: the test clock of one merchant."""

from datetime import timedelta
from typing import Annotated

import typer

from guichet.cli.arguments import Json, OptionalBy, actor, parser
from guichet.cli.console import console, print_json, show_done
from guichet.cli.runner import run
from guichet.cli.sandbox_merchant import OfMerchant, chosen_merchant
from guichet.clock import SECOND, iso, later
from guichet.context import AppContext
from guichet.domain.ids import MerchantId
from guichet.domain.records import described
from guichet.sandbox import clock as sandbox_clock
from guichet.sandbox.clock import Moved

app = typer.Typer(no_args_is_help=True, help="The test clock of a merchant: time passes for what waits in test.")


_seconds = parser(sandbox_clock.read_duration, "a duration is expected, such as 10s, 15m, 1h30m or 2d.")


@app.command(epilog="Example: `guichet clock advance 1h`")
def advance(
    duration: Annotated[int, typer.Argument(parser=_seconds, metavar="DURATION", help="Such as 10s, 15m, 1h30m, 2d.")],
    merchant: OfMerchant = None,
    by: OptionalBy = None,
    as_json: Json = False,
) -> None:
    """Let time pass for what waits in a merchant's test environment: pending payments and refunds, webhooks that are
    tried again. Live, and other merchants, are not touched."""

    async def work(ctx: AppContext) -> tuple[MerchantId, Moved]:
        clock_merchant = await chosen_merchant(ctx, merchant)
        return clock_merchant.id, await sandbox_clock.advance(ctx, clock_merchant.id, duration, actor(by))

    clock_merchant_id, moved = run(work)
    if as_json:
        facts = described(moved, ("payments", "refunds", "deliveries"))
        print_json({"merchant_id": clock_merchant_id, "advanced_seconds": duration, **facts})
        return
    console.print(
        f"{timedelta(seconds=duration)} passed for merchant {clock_merchant_id} in test: {moved.payments} payments, "
        f"{moved.refunds} refunds and {moved.deliveries} webhooks were waiting. The worker does what is due now.",
        soft_wrap=True,
    )


@app.command(epilog="Example: `guichet clock show`")
def show(merchant: OfMerchant = None, as_json: Json = False) -> None:
    """Show how far a merchant's test clock was advanced since its last reset, and what time it would be."""

    async def work(ctx: AppContext) -> tuple[MerchantId, int, str]:
        of = await chosen_merchant(ctx, merchant)
        ahead = await sandbox_clock.advanced_by(ctx.db, of.id)
        return of.id, ahead, iso(later(ctx.clock.now(), ahead * SECOND))

    of, ahead, time = run(work)
    if as_json:
        print_json({"merchant_id": of, "ahead_seconds": ahead, "time": time})
    else:
        console.print(f"The test clock of merchant {of} is {timedelta(seconds=ahead)} ahead: {time}.", soft_wrap=True)


@app.command(epilog="Example: `guichet clock reset`")
def reset(merchant: OfMerchant = None, by: OptionalBy = None, as_json: Json = False) -> None:
    """Count from zero again. What time has passed for is not undone."""

    async def work(ctx: AppContext) -> MerchantId:
        of = await chosen_merchant(ctx, merchant)
        await sandbox_clock.reset(ctx.db, ctx.clock, of.id, actor(by))
        return of.id

    of = run(work)
    sentence = f"The test clock of merchant {of} shows the real time."
    show_done({"merchant_id": of, "ahead_seconds": 0}, sentence, as_json=as_json)
