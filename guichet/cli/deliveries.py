"""`guichet delivery …`: the webhooks of all merchants, and sending them again after their attempts have ended."""

from typing import Annotated, Final, get_args

import typer

from guichet.cli.arguments import (
    EXAMPLE_REFERENCE,
    By,
    Json,
    MerchantIdValue,
    Reference,
    actor,
    instant,
    merchant_option,
)
from guichet.cli.console import error_console, show_done, show_facts, show_rows
from guichet.cli.errors import CommandError
from guichet.cli.runner import get_merchant, run
from guichet.clock import Clock, Instant, iso
from guichet.context import AppContext
from guichet.db.engine import Database
from guichet.db.lists.pages import PageBounds
from guichet.db.references import parse_reference
from guichet.domain.events import MAX_ATTEMPTS, Delivery, DeliveryStatus
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import ENVS
from guichet.domain.records import described, iso_or_none
from guichet.merchants import repository as merchants
from guichet.payments import repository as payments
from guichet.webhooks import delivery_log
from guichet.webhooks.delivery_log import DeliveryFilter
from guichet.webhooks.resend import BulkResend, find, listed, resend

app = typer.Typer(no_args_is_help=True, help="Webhooks: their log, and sending them again.")

_COLUMNS: Final = {
    "id": "Delivery",
    "merchant_id": "Merchant",
    "env": "Env",
    "event": "Event",
    "url": "Address",
    "status": "Status",
    "attempts": "Attempts",
    "response_code": "Response",
    "created_at": "Created",
    "delivered_at": "Delivered",
}
_Merchant = Annotated[MerchantIdValue | None, merchant_option("As `guichet merchant list` shows it.")]
_Since = Annotated[
    Instant | None,
    typer.Option("--since", parser=instant, metavar="DATE", help="Created since then (UTC without an offset)."),
]


@app.command("list", epilog="Example: `guichet delivery list --merchant 1 --since 2026-11-20 --status failed`")
def list_deliveries(
    merchant: _Merchant = None,
    since: _Since = None,
    status: Annotated[str | None, typer.Option(metavar="|".join(get_args(DeliveryStatus)))] = None,
    as_json: Json = False,
) -> None:
    """Show webhooks, newest first, at most 500: of one merchant, or among the latest 10 000 of all."""
    state = _status(status)

    rows = run(lambda ctx: listed(ctx.db, merchant, since or Instant(0), state))
    show_rows("deliveries", [_described(delivery) for delivery in rows], _COLUMNS, as_json=as_json)


@app.command(epilog=f"Example: `guichet delivery show {EXAMPLE_REFERENCE}`")
def show(delivery_id: Reference, as_json: Json = False) -> None:
    """Show one webhook: its attempts, the address it goes to, and the address that the merchant has configured now."""

    async def work(ctx: AppContext) -> dict[str, object]:
        delivery = await find_delivery(ctx.db, delivery_id)
        endpoint = await merchants.endpoint(ctx.db, delivery.merchant_id, delivery.env)
        return {
            **_described(delivery),
            "last_attempt_at": iso_or_none(delivery.last_attempt_at),
            "next_attempt_at": iso_or_none(delivery.next_attempt_at),
            "target": delivery.target,
            "endpoint_now": endpoint.url,
        }

    show_facts(run(work), as_json=as_json)


@app.command(
    "resend",
    epilog=f"Examples: `guichet delivery resend {EXAMPLE_REFERENCE} --by Awa`, "
    "`guichet delivery resend --merchant 1 --since 2026-11-20T08:00:00Z --status failed --by Awa`",
)
def send_again(
    by: By,
    delivery_id: Annotated[
        str | None, typer.Argument(metavar="DELIVERY_ID", help="A delivered one is sent too.")
    ] = None,
    merchant: _Merchant = None,
    since: _Since = None,
    status: Annotated[
        str, typer.Option(metavar="failed", help="Delivered ones are sent again by their id only.")
    ] = "failed",
    as_json: Json = False,
) -> None:
    """Send webhooks again, with the same id, body and address: five attempts from now on, made by the worker."""
    if (delivery_id is None) == (merchant is None) or (merchant is None) != (since is None):
        raise typer.BadParameter("either DELIVERY_ID or --merchant and --since are expected.")
    if status != "failed":
        raise typer.BadParameter("--status failed is expected: a delivered webhook is sent again by its id.")
    if delivery_id is not None:
        _resend_one(delivery_id, by, as_json=as_json)
    elif merchant is not None and since is not None:
        _resend_failed(merchant, since, by, as_json=as_json)


def _resend_one(text: str, by: str, *, as_json: bool) -> None:
    reference = parse_reference(text)
    if reference is None:
        raise typer.BadParameter(f"a delivery's id is expected, such as {EXAMPLE_REFERENCE}.")

    async def work(ctx: AppContext) -> Delivery:
        return await resend_one(ctx.db, ctx.clock, await find_delivery(ctx.db, reference), by)

    print_resent(run(work), as_json=as_json)


async def resend_one(db: Database, clock: Clock, delivery: Delivery, by: str | None) -> Delivery:
    """The delivery as it waits for the worker now. Raises ActRefused."""
    await resend(db, clock, delivery, actor(by))
    return await find_delivery(db, delivery.reference)


def print_resent(delivery: Delivery, *, as_json: bool) -> None:
    sentence = f"{delivery.reference} is sent again to {delivery.url}, at most {MAX_ATTEMPTS} times."
    show_done(_described(delivery), sentence, as_json=as_json)


def _resend_failed(merchant: MerchantId, since: Instant, by: str, *, as_json: bool) -> None:
    async def work(ctx: AppContext) -> int:
        await get_merchant(ctx.db, merchant)
        until, resent = ctx.clock.now(), 0
        for env in ENVS:
            walk = BulkResend(ctx, merchant, env, since, until, actor(by))
            while not walk.finished:
                resent += await walk.step()
                if not as_json:
                    error_console.print(f"{env}: {resent} so far")
        return resent

    count = run(work, None)
    sentence = f"{count} failed webhooks of merchant {merchant} are sent again."
    show_done({"merchant_id": merchant, "since": iso(since), "resent": count}, sentence, as_json=as_json)


async def find_delivery(db: Database, reference: str) -> Delivery:
    """Raises CommandError when there is none."""
    delivery = await find(db, reference)
    if delivery is None:
        raise CommandError(f"There is no webhook with the id {reference}.")
    return delivery


async def find_delivery_or_last(db: Database, reference: str) -> Delivery:
    """As `find_delivery`, or the last one about the payment of that reference."""
    payment = await payments.find(db, reference)
    if payment is None:
        return await find_delivery(db, reference)
    filters = DeliveryFilter(payment_id=payment.id)
    rows, _ = await delivery_log.page(db, payment.merchant_id, payment.env, PageBounds(1), filters)
    if not rows:
        raise CommandError(f"There is no webhook about the payment {reference}.")
    return rows[0]


def _status(text: str | None) -> DeliveryStatus | None:
    statuses = get_args(DeliveryStatus)
    if text is not None and text not in statuses:
        raise typer.BadParameter(f"--status: one of {', '.join(statuses)} is expected.")
    return text  # type: ignore[return-value]  # checked above


def _described(delivery: Delivery) -> dict[str, object]:
    return described(delivery, _COLUMNS, id=delivery.reference)
