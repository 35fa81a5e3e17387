"""What a merchant should look at: each thing only for those who may open the page about it."""

from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from guichet.accounts.rights import Member
from guichet.clock import DAY, HOUR, Instant, earlier, later
from guichet.console.overview.summaries import count_text
from guichet.console.visit import Visit
from guichet.domain.money import Currency
from guichet.domain.posting_rules import ACTIVE, WalletStatus
from guichet.ledger import wallets
from guichet.merchants import api_keys
from guichet.payments import repository as payments
from guichet.payments.repository import PaymentFilter
from guichet.webhooks import deliveries

#: A customer confirms within minutes; what is pending after that waits for the operator.
_LONG: Final = HOUR
_RECENTLY: Final = DAY
#: How long before and after its end a key is named.
_KEY_NOTICE: Final = 14 * DAY


@dataclass(frozen=True, slots=True)
class Concern:
    """A sentence, and the address of the page about it; None when this installation has none."""

    text: Markup
    href: str | None
    serious: bool = False


async def concerns(visit: Visit, acting: Member, currency: Currency, now: Instant) -> list[Concern]:
    """The most serious first. Cost: bounded by what waits, not by how many payments there are."""
    found = []
    if acting.may("balance.view"):
        status = await wallets.wallet_status(visit.console.ctx.db, acting.merchant.id, acting.env, currency)
        found += _of_wallet(visit, status)
    if acting.may("webhooks.view"):
        found += await _of_webhooks(visit, acting, now)
    if acting.may("keys.view"):
        found += await _of_keys(visit, acting, now)
    if acting.may("payments.view"):
        found += await _of_payments(visit, acting, now)
    return sorted(found, key=lambda each: not each.serious)


def _of_wallet(visit: Visit, status: WalletStatus) -> list[Concern]:
    if status == ACTIVE:
        return []
    return [Concern(visit.text("overview.wallet_not_active"), _page(visit, "/balance"), serious=True)]


async def _of_webhooks(visit: Visit, acting: Member, now: Instant) -> list[Concern]:
    db, mine = visit.console.ctx.db, (acting.merchant.id, acting.env)
    failed = await deliveries.failed_since(db, *mine, earlier(now, _RECENTLY))
    waiting = await deliveries.retried(db, *mine)
    found = []
    if failed:
        text = visit.text("overview.webhooks_failed", count=count_text(failed, visit.language))
        found.append(Concern(text, _page(visit, "/webhooks"), serious=True))
    if waiting:
        more = "+" if waiting == deliveries.MOST_RETRIED else ""
        text = visit.text("overview.webhooks_retried", count=count_text(waiting, visit.language) + more)
        found.append(Concern(text, _page(visit, "/webhooks")))
    return found


async def _of_keys(visit: Visit, acting: Member, now: Instant) -> list[Concern]:
    found = []
    for key in await api_keys.list_of(visit.console.ctx.db, acting.merchant.id):
        ends = key.expires_at
        if key.env != acting.env or key.revoked_at is not None or ends is None:
            continue
        if not earlier(now, _KEY_NOTICE) <= ends <= later(now, _KEY_NOTICE):
            continue
        values = {"preview": key.preview, "date": visit.date_time(ends)}
        expired = ends <= now
        text = visit.text("overview.key_expired" if expired else "overview.key_expires", **values)
        found.append(Concern(text, _page(visit, "/developers"), serious=expired))
    return found


async def _of_payments(visit: Visit, acting: Member, now: Instant) -> list[Concern]:
    wanted = PaymentFilter(status="pending", until=earlier(now, _LONG))
    _, total = await payments.page(visit.console.ctx.db, acting.merchant.id, acting.env, wanted, 1, 0)
    if not total:
        return []
    text = visit.text("overview.pending_long", count=count_text(total, visit.language))
    return [Concern(text, _page(visit, "/payments", status="pending"))]


def _page(visit: Visit, path: str, status: str | None = None) -> str | None:
    """The address of a page that stands in the menu of this person."""
    in_menu = any(entry.href == visit.here(path) for entry in visit.menu)
    return visit.here(path, status=status) if in_menu else None
