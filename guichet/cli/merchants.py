"""`guichet merchant …`: merchants, their status, their time zone and their limits."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Final, TypeVar

import typer

from guichet.back_office import merchants as administration
from guichet.back_office.anonymisation import Anonymised, CustomerKeys, anonymise_customer, read_phone
from guichet.back_office.merchants import MAX_RATE, read_amount, read_rate, set_limits
from guichet.cli.arguments import Evidence, Json, MerchantId, OptionalBy, actor, email_address, parser
from guichet.cli.console import console, print_json, print_table, show_done
from guichet.cli.runner import get_merchant, run
from guichet.context import AppContext
from guichet.domain.merchants import Merchant, MerchantLimits, MerchantStatus, merchant_name
from guichet.domain.money import DEFAULT_CURRENCY, Currency, plain
from guichet.domain.records import described
from guichet.merchants import repository as merchants
from guichet.settings import parsers

Value = TypeVar("Value", bound=int)

_name = parser(merchant_name, "1 to 100 printable characters without a web or mail address are expected.")
_phone = parser(read_phone, "8 to 15 digits with the country's code are expected.")
_COLUMNS: Final = {
    "id": "Id",
    "name": "Name",
    "status": "Status",
    "currency": "Currency",
    "created_at": "Created",
    "time_zone": "Time zone",
}
app = typer.Typer(no_args_is_help=True, help="Merchants.")


def _zone(text: str) -> str:
    try:
        return str(parsers.time_zone(text))
    except ValueError as fault:
        raise typer.BadParameter(f"It {fault}.") from None


@app.command(epilog='Example: `guichet merchant create "Boutique Awa" --status pending --json`')
def create(
    name: Annotated[str, typer.Argument(parser=_name, metavar="NAME", help="Name that customers see.")],
    status: Annotated[
        MerchantStatus, typer.Option(help="Live keys work only while it is active; test keys always work.")
    ] = "active",
    currency: Annotated[
        Currency,
        typer.Option(help="Default currency: the first wallet's and the payment links'.", case_sensitive=False),
    ] = DEFAULT_CURRENCY,
    by: OptionalBy = None,
    as_json: Json = False,
) -> None:
    """Create a merchant with a test key and a live key. The keys are shown only once."""

    merchant, keys = run(
        lambda ctx: administration.create_merchant(ctx, name, status, currency, actor=actor(by)),
        create=True,
    )
    if as_json:
        print_json({"id": merchant.id, "name": merchant.name, "status": merchant.status, "keys": keys})
        return
    console.print(f"Merchant {merchant.id}, {merchant.name}, is {merchant.status}. Its keys are shown only once:")
    for env, key in keys.items():
        console.print(f"  {env}  {key}", soft_wrap=True)


@app.command("list", epilog="Example: `guichet merchant list --json`")
def list_all(as_json: Json = False) -> None:
    """List every merchant."""
    all_merchants = run(lambda ctx: merchants.all_merchants(ctx.db))
    if as_json:
        print_json({"merchants": [_described(merchant) for merchant in all_merchants]})
    else:
        rows = [described(merchant, _COLUMNS, time_zone=merchant.time_zone or "–") for merchant in all_merchants]
        print_table([*_COLUMNS.values()], [[*row.values()] for row in rows])


@app.command(epilog="Example: `guichet merchant status 1 suspended`")
def status(
    merchant_id: MerchantId,
    new_status: Annotated[MerchantStatus, typer.Argument(metavar="active|pending|suspended")],
    by: OptionalBy = None,
    as_json: Json = False,
) -> None:
    """Change a merchant's status: its live keys work only while it is active."""

    merchant = run(lambda ctx: administration.set_status(ctx.db, ctx.clock, merchant_id, new_status, actor(by)))
    sentence = f"Merchant {merchant.id}, {merchant.name}, is {merchant.status}."
    show_done(_described(merchant), sentence, as_json=as_json)


@app.command("time-zone", epilog="Example: `guichet merchant time-zone 1 Africa/Dakar`")
def time_zone(
    merchant_id: MerchantId,
    zone: Annotated[
        str | None, typer.Argument(parser=_zone, metavar="[ZONE]", help="Without it, the installation's from now on.")
    ] = None,
    by: OptionalBy = None,
    as_json: Json = False,
) -> None:
    """Set the time zone of the dates on a merchant's hosted pages and receipts."""

    merchant = run(lambda ctx: administration.set_time_zone(ctx.db, ctx.clock, merchant_id, zone, actor(by)))
    dates_zone = merchant.time_zone or "the installation's time zone"
    sentence = f"The pages of merchant {merchant.id}, {merchant.name}, show dates in {dates_zone}."
    show_done(_described(merchant), sentence, as_json=as_json)


@app.command(epilog="Example: `guichet merchant limits 1 --rate 600 --payment 200000 --day none`")
def limits(
    merchant_id: MerchantId,
    rate: Annotated[
        str | None, typer.Option(metavar="N", help="Requests a minute of all its keys together, instead of an address.")
    ] = None,
    payment: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="Highest amount of one live payment, in its currency.")
    ] = None,
    day: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="Highest total of the live payments of a day that do not fail.")
    ] = None,
    by: OptionalBy = None,
    as_json: Json = False,
) -> None:
    """Show or change a merchant's own limits. `none` is the common limit again; what is not given stays."""
    new_rate = _limit(rate, "--rate", read_rate, f"a whole number from 1 to {MAX_RATE}")
    new_payment, new_day = (
        _limit(text, option, read_amount, "an amount of at least 1, such as 200000")
        for text, option in ((payment, "--payment"), (day, "--day"))
    )

    async def work(ctx: AppContext) -> Merchant:
        merchant = await get_merchant(ctx.db, merchant_id)
        new_limits = MerchantLimits(
            merchant.rate_limit if rate is None else new_rate,
            merchant.payment_limit if payment is None else new_payment,
            merchant.daily_limit if day is None else new_day,
        )
        if new_limits == merchant.limits:
            return merchant
        return await set_limits(ctx.db, ctx.clock, merchant_id, new_limits, actor(by))

    merchant = run(work)
    if as_json:
        print_json(_described(merchant))
        return
    rows = [
        ("Requests a minute", merchant.rate_limit),
        (f"One live payment, {merchant.currency}", _plain(merchant.payment_limit)),
        (f"Live payments of a day, {merchant.currency}", _plain(merchant.daily_limit)),
    ]
    print_table(("Limit", "Of this merchant"), [(name, value or "as for everybody") for name, value in rows])


def _limit(text: str | None, option: str, read: Callable[[str], Value | None], expected: str) -> Value | None:
    if text is None or text == "none":
        return None
    value = read(text)
    if value is None:
        raise typer.BadParameter(f"{expected} or `none` is expected.", param_hint=option)
    return value


def _plain(amount: int | None) -> str | None:
    return None if amount is None else plain(amount)


@app.command(
    "anonymise-customer",
    epilog='Example: `guichet merchant anonymise-customer 1 --phone 2290197001234 --evidence "Letter of 3 May" --json`',
)
def anonymise(
    merchant_id: MerchantId,
    evidence: Evidence,
    phone: Annotated[
        str | None, typer.Option(parser=_phone, metavar="NUMBER", help="Number that paid, with the country's code.")
    ] = None,
    email: Annotated[
        str | None, typer.Option(parser=email_address, metavar="EMAIL", help="E-mail address given.")
    ] = None,
    by: OptionalBy = None,
    as_json: Json = False,
) -> None:
    """Remove what is known of one customer of a merchant, in both environments. The books and the logs stay whole.

    Payments that are not at their end are left for the next time: they need the number.
    """
    if phone is None and email is None:
        raise typer.BadParameter("give --phone, --email, or both.")

    async def work(ctx: AppContext) -> Anonymised:
        await get_merchant(ctx.db, merchant_id)
        return await anonymise_customer(ctx.db, ctx.clock, merchant_id, CustomerKeys(phone, email), actor(by), evidence)

    result = run(work)
    if as_json:
        print_json({"merchant_id": merchant_id, **asdict(result)})
        return
    payments, refunds, webhooks = result.payments, result.refunds, result.deliveries
    console.print(f"{payments} payments, {refunds} refunds and {webhooks} webhooks name nobody now.")
    if result.waiting:
        console.print("Not at their end yet, so ask again later:")
        for reference in result.waiting:
            console.print(f"  {reference}", soft_wrap=True)


def _described(merchant: Merchant) -> dict[str, object]:
    limits = {
        "requests_per_minute": merchant.rate_limit,
        "payment": _plain(merchant.payment_limit),
        "day": _plain(merchant.daily_limit),
    }
    return {**described(merchant, _COLUMNS), "limits": limits}
