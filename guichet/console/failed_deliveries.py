"""Sending again, from a page, what failed of a merchant since an hour, a day or a week: in its own console, and by the
staff."""

from collections.abc import Sequence
from typing import Final

from guichet.clock import DAY, HOUR, SECOND, Instant, earlier
from guichet.context import AppContext
from guichet.domain.audit_log import Actor
from guichet.domain.errors import InvalidRequest
from guichet.domain.events import Delivery
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.webhooks.resend import BulkResend

#: How far back failed deliveries can be sent again at once; each has a text `webhooks.since.`.
PERIODS: Final = {"hour": HOUR, "day": DAY, "week": 7 * DAY}
#: Microseconds after which sending again stops, to be gone on with by the next press of the button.
_RESEND_TIME: Final = 5 * SECOND


def offered_period(shown: Sequence[Delivery], now: Instant) -> str:
    """The period that is offered first: a day, for whoever comes in the morning, or a longer one if the failures of
    the page are older."""
    failed = min((each.created_at for each in shown if each.status == "failed"), default=now)
    return "day" if failed >= earlier(now, PERIODS["day"]) else "week"


async def resend_failed(
    ctx: AppContext, merchant_id: MerchantId, envs: Sequence[Environment], period: str, actor: Actor
) -> tuple[int, bool]:
    """How many are due again, and whether some may be left. Raises InvalidRequest for a period that is not offered."""
    if period not in PERIODS:
        raise InvalidRequest
    now, began, resent = ctx.clock.now(), ctx.clock.monotonic(), 0
    walks = [BulkResend(ctx, merchant_id, env, earlier(now, PERIODS[period]), now, actor) for env in envs]
    for walk in walks:
        while not walk.finished and ctx.clock.monotonic() - began < _RESEND_TIME:
            resent += await walk.step()
    ctx.wakeups.deliveries.set()
    return resent, not all(walk.finished for walk in walks)
