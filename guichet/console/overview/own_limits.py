"""The limits that the staff gave this merchant alone (D166), with what is left of them.

They stand on the overview because it is the one page that the owner, finance and the developers all may open in live;
the balance is closed to developers there, and the developers' page to finance.
"""

from guichet.clock import Instant
from guichet.console.overview.summaries import count_text
from guichet.console.page_request import MerchantRequest
from guichet.merchants import limits as merchant_limits


async def own_limits(request: MerchantRequest, now: Instant) -> list[tuple[str, str]]:
    """(what, how much) of each, none for a merchant like the others. Those of amounts are about live payments alone.
    Reads one row for a merchant with a limit of the day."""
    merchant = request.merchant
    lines: list[tuple[str, str]] = []
    if request.env == "live" and merchant.payment_limit is not None:
        most = request.amount(merchant.payment_limit, merchant.currency)
        lines.append((request.text("overview.limit_payment"), most))
    if request.env == "live" and merchant.daily_limit is not None:
        ctx = request.ctx
        day = merchant_limits.day_of(merchant, now, ctx.settings.time_zone)
        left = max(0, merchant.daily_limit - await merchant_limits.total_of(ctx.db, merchant.id, day))
        values = {"most": merchant.daily_limit, "left": left}
        shown = {name: request.amount(amount, merchant.currency) for name, amount in values.items()}
        lines.append((request.text("overview.limit_day"), request.text("overview.limit_day_left", **shown)))
    if merchant.rate_limit is not None:
        count = count_text(merchant.rate_limit, request.language)
        lines.append((request.text("overview.limit_rate"), request.text("overview.limit_rate_of", count=count)))
    return lines
