"""Whose test environment a developer's command acts on."""

from typing import Annotated

from guichet.cli.arguments import MerchantIdValue, merchant_option
from guichet.cli.errors import CommandError
from guichet.cli.runner import get_merchant
from guichet.context import AppContext
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Merchant
from guichet_demo.merchant import demo_merchant

OfMerchant = Annotated[MerchantIdValue | None, merchant_option("In development by default the demo merchant.")]


async def chosen_merchant(ctx: AppContext, merchant_id: int | None) -> Merchant:
    """The merchant of `--merchant`; without it the demo merchant, which only the development profile has."""
    if merchant_id is not None:
        return await get_merchant(ctx.db, MerchantId(merchant_id))
    if not ctx.settings.development:
        raise CommandError("--merchant is expected: there is no demo merchant in production.")
    return await get_merchant(ctx.db, (await demo_merchant(ctx)).merchant_id)
