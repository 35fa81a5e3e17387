"""Stripe's disputes: read page by page, never taken from an event (docs/providers/stripe.md, "Disputes")."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from guichet.clock import SECOND, Instant
from guichet.providers.base import Unknown
from guichet.providers.capabilities import DisputedStatus, DisputeFacts
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.shared.fields import text_or_none
from guichet.providers.stripe.responses import currency_of, hundredths

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
_PAGE: Final = 100
#: At most so many pages are read at once: ten thousand disputes would be an incident of its own.
_MOST_PAGES: Final = 100


async def list_disputes(
    get: Callable[[str, Mapping[str, str]], Awaitable[ProviderResponse]], since: Instant
) -> list[DisputeFacts] | Unknown:
    """Every dispute that was opened after `since`; Unknown when a page is missing or not readable."""
    query = {"limit": str(_PAGE), "created[gte]": str(since // SECOND), "expand[]": "data.payment_intent"}
    disputes: list[DisputeFacts] = []
    for _ in range(_MOST_PAGES):
        result = await get("/v1/disputes", query)
        page = result.ok_object()
        rows = page.get("data")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            return Unknown(result.raw)
        disputes += [facts for row in rows if (facts := _facts(row))]
        if not page.get("has_more") or not rows:
            return disputes
        query = {**query, "starting_after": str(rows[-1].get("id"))}
    return Unknown(ProviderAnswer.TOO_MANY_DISPUTES())


def _facts(dispute: Mapping[str, Any]) -> DisputeFacts | None:
    """None for what cannot be read: it is read again at the next turn."""
    dispute_id, status = text_or_none(dispute.get("id")), _STATUSES.get(str(dispute.get("status")))
    currency = currency_of(dispute)
    amount = hundredths(dispute.get("amount"), currency)
    intent = dispute.get("payment_intent")
    metadata = intent.get("metadata") if isinstance(intent, dict) else None
    reference = text_or_none(metadata.get("reference")) if isinstance(metadata, dict) else None
    if dispute_id is None or status is None or amount is None or currency is None:
        return None
    details = dispute.get("evidence_details")
    due_by = details.get("due_by") if isinstance(details, dict) else None
    return DisputeFacts(
        provider_reference=dispute_id,
        payment_reference=reference,
        status=status,
        amount=amount,
        currency=currency,
        reason=text_or_none(dispute.get("reason")) or "general",
        opened_at=_instant(dispute.get("created")) or Instant(0),
        evidence_due_at=_instant(due_by),
        is_live=dispute.get("livemode") is not False,
    )


def _instant(seconds: object) -> Instant | None:
    return Instant(seconds * SECOND) if isinstance(seconds, int) and not isinstance(seconds, bool) else None
