"""Opening and closing payment modes, and their fees: for everybody or for one merchant."""

from guichet.audit_log import entries as audit_log
from guichet.back_office.errors import ClosedForEverybody, UnknownOperator
from guichet.context import AppContext
from guichet.domain.audit_log import Act, Actor, Facts
from guichet.domain.catalogue import Catalogue, ModeOverride, PaymentMode
from guichet.domain.ids import MerchantId
from guichet.merchants.catalogue import Catalogues, set_override


async def current_catalogue(ctx: AppContext, merchant_id: MerchantId | None) -> Catalogue:
    """The catalogue as it is now; the cached one of the service may be a second old. None: without a merchant's own
    settings."""
    return await Catalogues(ctx.db, ctx.clock, ctx.catalogues.base).of(merchant_id)


def find_mode(catalogue: Catalogue, operator: str) -> PaymentMode:
    """Raises UnknownOperator."""
    mode = catalogue.by_operator(operator)
    if mode is None:
        raise UnknownOperator(operator)
    return mode


async def change_mode(ctx: AppContext, change: ModeOverride, actor: Actor, reason: str = "") -> PaymentMode:
    """Lays `change` over what is set already, and returns the mode as it is from now on. What is None stays.

    Raises UnknownOperator, ClosedForEverybody.
    """
    mode = find_mode(await current_catalogue(ctx, change.merchant_id), change.operator)
    for_one = change.merchant_id is not None
    if change.active and for_one and not find_mode(await current_catalogue(ctx, None), mode.operator).active:
        raise ClosedForEverybody(mode.operator)
    given: Facts = {"active": change.active, "fee_percent": change.fee_percent, "fee_fixed": change.fee_fixed}
    facts: Facts = {name: value for name, value in given.items() if value is not None}
    before: Facts = {name: getattr(mode, name) for name in facts}
    act = Act(actor, "mode.changed", "mode", mode.operator, change.merchant_id, reason, before=before, after=facts)
    kept = ModeOverride(change.merchant_id, mode.operator, change.active, change.fee_percent, change.fee_fixed)
    async with ctx.db.transaction() as tx:
        await set_override(tx, kept)
        await audit_log.record(tx, act, ctx.clock.now())
    return find_mode(await current_catalogue(ctx, change.merchant_id), mode.operator)
