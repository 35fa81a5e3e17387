"""Stripe's disputes: read page by page, never taken from an event (docs/providers/stripe.md, "Disputes")."""

from collections.abc import Mapping
from typing import Any, Final

from guichet.clock import SECOND, Instant
from guichet.providers.base import Unknown
from guichet.providers.capabilities import DisputedStatus, DisputeFacts
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.fields import text_or_none, value_at
from guichet.providers.stripe.history import Get, listed
from guichet.providers.stripe.responses import currency_of, hundredths, instant, reference_in

#: The word → what it means for the money. An inquiry (`warning_…`) has taken nothing back.
_STATUSES: Final[dict[str, DisputedStatus]] = {
    "needs_response": "open",
    "under_review": "open",
    "won": "won",
    "lost": "lost",
    "warning_needs_response": "inquiry",
    "warning_under_review": "inquiry",
    "warning_closed": "inquiry",
    # Visa's Rapid Dispute Resolution: the holder of the card may have been paid back already.
    "prevented": "prevented",
}
#: At most so many pages are read at once: ten thousand disputes would be an incident of its own.
_MOST_PAGES: Final = 100


async def list_disputes(get: Get, since: Instant) -> list[DisputeFacts] | Unknown:
    """Every dispute that was opened after `since`; Unknown when a page is missing or not readable."""
    query = {"created[gte]": str(since // SECOND), "expand[]": "data.payment_intent"}
    rows = await listed(get, "/v1/disputes", query, _MOST_PAGES, ProviderAnswer.TOO_MANY_DISPUTES())
    return rows if isinstance(rows, Unknown) else [facts for row in rows if (facts := _facts(row))]


def _facts(dispute: Mapping[str, Any]) -> DisputeFacts | None:
    """None for what cannot be read: it is read again at the next turn."""
    dispute_id, status = text_or_none(dispute.get("id")), _STATUSES.get(str(dispute.get("status")))
    currency = currency_of(dispute)
    amount = hundredths(dispute.get("amount"), currency)
    if dispute_id is None or status is None or amount is None or currency is None:
        return None
    return DisputeFacts(
        provider_reference=dispute_id,
        payment_reference=reference_in(dispute.get("payment_intent")),
        status=status,
        amount=amount,
        currency=currency,
        reason=text_or_none(dispute.get("reason")) or "general",
        opened_at=instant(dispute.get("created")) or Instant(0),
        evidence_due_at=instant(value_at(dispute, "evidence_details", "due_by")),
        is_live=dispute.get("livemode") is not False,
    )
