"""What a merchant should look at, each thing only for those who may open the page about it; and the limits that the
staff gave this merchant alone, with what is left of them.

The limits stand on the overview because it is the one page that the owner, finance and the developers all may open in
live; the balance is closed to developers there, and the developers' page to finance.
"""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from guichet.clock import DAY, HOUR, Instant, earlier, later
from guichet.console.overview.figures import count_text
from guichet.console.page_request import MerchantRequest
from guichet.domain.disputes import Dispute
from guichet.domain.posting_rules import ACTIVE, Wallet
from guichet.merchants import api_keys
from guichet.merchants import limits as merchant_limits
from guichet.pages.views import View
from guichet.payments import lists
from guichet.refunds import proposal_repository
from guichet.webhooks import delivery_log

#: A customer confirms within minutes; what is pending after that waits for the operator.
_LONG: Final = HOUR
_RECENTLY: Final = DAY
#: Open disputes that are named, those that must be answered first.
_DISPUTES: Final = 5
#: How long before and after its end a key is named.
_KEY_NOTICE: Final = 14 * DAY


class Concern(View, frozen=True):
    """A sentence, and the address of the page about it; None when this installation has none."""

    text: Markup
    href: str | None
    serious: bool = False


async def concerns(
    request: MerchantRequest, wallet: Wallet | None, disputes: Sequence[Dispute], now: Instant
) -> list[Concern]:
    """The most serious first. `wallet`: None if there is none, and for somebody who may not see it; `disputes`: the
    open ones, none for somebody who may not see payments. Cost: bounded by what waits, not by how many payments there
    are."""
    listed = []
    if wallet is not None and wallet.status != ACTIVE:
        text = request.text("overview.wallet_not_active")
        listed.append(Concern(text, _page(request, "/balance"), serious=True))
    if request.may("webhooks.view"):
        listed += await _of_webhooks(request, now)
    if request.may("keys.view"):
        listed += await _of_keys(request, now)
    if request.may("payments.view"):
        listed += await _of_payments(request, disputes, now)
    if request.may("payments.refund"):
        listed += await _of_proposals(request, now)
    return sorted(listed, key=lambda concern: not concern.serious)


async def _of_webhooks(request: MerchantRequest, now: Instant) -> list[Concern]:
    db = request.db
    failed = await delivery_log.failed_since(db, *request.scope, earlier(now, _RECENTLY))
    waiting = await delivery_log.retried(db, *request.scope)
    listed = []
    if failed:
        text = request.text("overview.webhooks_failed", count=count_text(failed, request.language))
        listed.append(Concern(text, _page(request, "/webhooks"), serious=True))
    if waiting:
        more = "+" if waiting == delivery_log.MOST_RETRIED else ""
        text = request.text("overview.webhooks_retried", count=count_text(waiting, request.language) + more)
        listed.append(Concern(text, _page(request, "/webhooks")))
    return listed


async def _of_keys(request: MerchantRequest, now: Instant) -> list[Concern]:
    listed = []
    soon = earlier(now, _KEY_NOTICE), later(now, _KEY_NOTICE)
    for label, ends in await api_keys.expiring(request.db, *request.scope, *soon):
        values = {"key": label, "date": request.date_time(ends)}
        expired = ends <= now
        text = request.text("overview.key_expired" if expired else "overview.key_expires", **values)
        listed.append(Concern(text, _page(request, "/developers"), serious=expired))
    return listed


async def _of_payments(request: MerchantRequest, disputes: Sequence[Dispute], now: Instant) -> list[Concern]:
    listed = [_contested(request, dispute) for dispute in disputes[:_DISPUTES]]
    if total := await lists.count_waiting(request.db, *request.scope, earlier(now, _LONG)):
        text = request.text("overview.pending_long", count=count_text(total, request.language))
        listed.append(Concern(text, _page(request, "/payments", status="pending")))
    return listed


async def _of_proposals(request: MerchantRequest, now: Instant) -> list[Concern]:
    count = await proposal_repository.count_open(request.db, *request.scope, now)
    if not count:
        return []
    more = "+" if count == proposal_repository.MOST else ""
    text = request.text("overview.refunds_proposed", count=count_text(count, request.language) + more)
    return [Concern(text, request.merchant_url("/refund-proposals"))]


def _contested(request: MerchantRequest, dispute: Dispute) -> Concern:
    values = {"amount": request.amount(dispute.amount, dispute.currency)}
    text = request.text("overview.contested", **values)
    if dispute.evidence_due_at is not None:
        text = request.text("overview.contested_until", **values, at=request.date_time(dispute.evidence_due_at))
    return Concern(text, request.merchant_url(f"/payments/{dispute.payment_reference}"), serious=True)


def _page(request: MerchantRequest, path: str, status: str | None = None) -> str | None:
    """The address of a page that stands in the menu of this person."""
    in_menu = any(entry.href == request.merchant_url(path) for entry in request.navigation.menu)
    return request.merchant_url(path, status=status) if in_menu else None


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
        texts = {name: request.amount(amount, merchant.currency) for name, amount in values.items()}
        lines.append((request.text("overview.limit_day"), request.text("overview.limit_day_left", **texts)))
    if merchant.rate_limit is not None:
        count = count_text(merchant.rate_limit, request.language)
        lines.append((request.text("overview.limit_rate"), request.text("overview.limit_rate_of", count=count)))
    return lines
