"""`guichet mode …`: which payment modes are open and what they cost, for everybody or for one merchant."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Final

import typer

from guichet.back_office.errors import ClosedForEverybody, UnknownOperator
from guichet.back_office.merchants import change_mode, current_catalogue
from guichet.cli.arguments import Json, MerchantIdValue, OptionalBy, actor, merchant_option
from guichet.cli.console import console, print_json, print_table
from guichet.cli.errors import CommandError, fail
from guichet.cli.runner import get_merchant, run
from guichet.context import AppContext
from guichet.domain.availability import UP, OperatorState
from guichet.domain.catalogue import RATE_PLACES, Catalogue, ModeOverride, PaymentMode, percent
from guichet.domain.money import Hundredths, parse_decimal, plain
from guichet.schemas.payment_mode import payment_mode_object

app = typer.Typer(no_args_is_help=True, help="Payment modes and fees. A running server sees a change within a second.")


_FIXED_PLACES: Final = 2
_HUNDRED_PERCENT: Final = 100 * 10**RATE_PLACES

#: By operator, as `AvailabilityReader.states` returns them.
States = Mapping[str, OperatorState]
Operator = Annotated[
    str, typer.Argument(metavar="OPERATOR", help="Operator code, in upper or lower case; see `guichet mode list`.")
]
Merchant = Annotated[MerchantIdValue | None, merchant_option("For this merchant only.", "ID")]


@app.command("list", epilog="Example: `guichet mode list --merchant 1`")
def list_modes(merchant: Merchant = None, as_json: Json = False) -> None:
    """List every payment mode, open or closed, with its fees: the general ones, or those of one merchant."""

    async def work(ctx: AppContext) -> tuple[Catalogue, States]:
        if merchant is not None:
            await get_merchant(ctx.db, merchant)
        return await current_catalogue(ctx, merchant), await ctx.availability.states()

    catalogue, states = run(work)
    modes = catalogue.modes
    if as_json:
        print_json({"merchant_id": merchant, "modes": [_described(mode, states) for mode in modes]})
    else:
        columns = ("Id", "Operator", "Name", "Country", "Fee", "OTP", "State")
        print_table(columns, [_row(mode) for mode in modes])


@app.command(epilog="Example: `guichet mode enable wave_ci`")
def enable(operator: Operator, merchant: Merchant = None, by: OptionalBy = None, as_json: Json = False) -> None:
    """Open a payment mode. One that is closed for everybody cannot be opened for one merchant."""
    _change(ModeOverride(merchant, operator, active=True), by, as_json=as_json)


@app.command(epilog="Example: `guichet mode disable wave_ci --merchant 1`")
def disable(operator: Operator, merchant: Merchant = None, by: OptionalBy = None, as_json: Json = False) -> None:
    """Close a payment mode: new payments are refused, payments under way continue."""
    _change(ModeOverride(merchant, operator, active=False), by, as_json=as_json)


@app.command(epilog="Example: `guichet mode fee mtn --percent 1.75 --fixed 100 --merchant 1`")
def fee(
    operator: Operator,
    percent: Annotated[str | None, typer.Option(help="Percent of the amount, such as 1.75.")] = None,
    fixed: Annotated[
        str | None, typer.Option(help="Fixed amount added to it, in the main unit of the currency.")
    ] = None,
    merchant: Merchant = None,
    by: OptionalBy = None,
    as_json: Json = False,
) -> None:
    """Set the fee that customers pay for a payment mode. A part that is not given stays as it is."""
    if percent is None and fixed is None:
        raise typer.BadParameter("give --percent, --fixed, or both.")
    rate = None if percent is None else _parse("--percent", percent, RATE_PLACES)
    amount = None if fixed is None else Hundredths(_parse("--fixed", fixed, _FIXED_PLACES))
    if rate is not None and rate > _HUNDRED_PERCENT:
        fail("--percent must not exceed 100.")
    _change(ModeOverride(merchant, operator, fee_percent=rate, fee_fixed=amount), by, as_json=as_json)


def _parse(option: str, text: str, places: int) -> int:
    """`text` as an integer of `places` decimals. It is never rounded: too many decimals are an error."""
    parsed = parse_decimal(text, places)
    if parsed is None:
        raise typer.BadParameter(f"{option} must be a number of 0 or more, with a point, such as 1.75.")
    if Decimal(text).scaleb(places) != parsed:
        fail(f"{option} has more than {places} decimals: {text} cannot be kept exactly.")
    return parsed


def _change(change: ModeOverride, by: str | None, *, as_json: bool) -> None:
    """Prints the payment mode as it is from now on."""
    merchant_id = change.merchant_id

    async def work(ctx: AppContext) -> tuple[PaymentMode, States]:
        if merchant_id is not None:
            await get_merchant(ctx.db, merchant_id)
        try:
            changed = await change_mode(ctx, change, actor(by))
        except UnknownOperator:
            raise CommandError(
                f"There is no operator {change.operator!r}; `guichet mode list` shows the codes."
            ) from None
        except ClosedForEverybody as closed:
            raise CommandError(
                f"{closed} is closed for everybody; open it first with `guichet mode enable {closed}`."
            ) from None
        return changed, await ctx.availability.states()

    mode, states = run(work)
    if as_json:
        print_json({"merchant_id": merchant_id, **_described(mode, states)})
        return
    whom = "everybody" if merchant_id is None else f"merchant {merchant_id}"
    console.print(f"{mode.operator} is {_state(mode)} for {whom}, at {_fee(mode)}.")


def _described(mode: PaymentMode, states: States) -> dict[str, object]:
    return {**payment_mode_object(mode, states.get(mode.operator, UP)), "active": mode.active}


def _row(mode: PaymentMode) -> tuple[object, ...]:
    otp = "required" if mode.requires_otp else None
    return mode.id, mode.operator, mode.name, mode.country, _fee(mode), otp, _state(mode)


def _state(mode: PaymentMode) -> str:
    return "open" if mode.active else "closed"


def _fee(mode: PaymentMode) -> str:
    return f"{bytes(percent(mode.fee_percent)).decode()} % + {plain(mode.fee_fixed)}"
