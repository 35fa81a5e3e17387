"""Stripe's lists, page by page: every movement of the account, and its disputes (docs/providers/stripe.md, "Statement",
"Disputes").

The list of movements has what no event tells for sure: refunds that somebody made in the dashboard, and refunds that
came back after their success.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from guichet.clock import SECOND, Instant, iso
from guichet.domain.messages import Day, Message
from guichet.domain.money import CURRENCIES
from guichet.domain.reconciliation import DISPUTE, PAYMENT, REFUND, Line, LineKind, LineStatus, Settled
from guichet.providers.base import Unknown
from guichet.providers.capabilities import DisputedStatus, DisputeFacts
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.shared.fields import text_or_none, value_at
from guichet.providers.stripe.responses import currency_of, hundredths, instant, reference_in

#: One GET of a path with this query.
Get = Callable[[str, Mapping[str, str]], Awaitable[ProviderResponse]]
Body = Mapping[str, Any]

_PAGE: Final = 100
#: Beyond half a million movements the period is not read to its end.
_MOST_PAGES: Final = 5_000
#: The word → what it means for the money. An inquiry (`warning_…`) has taken nothing back.
_DISPUTE_STATUSES: Final[dict[str, DisputedStatus]] = {
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
#: Ten thousand disputes would be an incident of their own.
_MOST_DISPUTE_PAGES: Final = 100
_CHARGES: Final = frozenset({"charge", "payment"})
_REFUNDS: Final = frozenset({"refund", "payment_refund"})
#: Its money is back in our balance. Older rows have the type `adjustment` and say so in `reporting_category`.
_FAILED_REFUND: Final = "refund_failure"
#: What was authorised and not captured is no refund.
_PARTIAL_CAPTURE: Final = "partial_capture_reversal"
_FAILED_STATUSES: Final = frozenset({"failed", "canceled"})


async def read_history(get: Get, since: Instant, until: Instant) -> list[Line] | Unknown:
    """The charges and refunds of this time, and the disputes that changed a balance in another currency. Unknown when
    one page cannot be read, or the payment of a refund that is not ours."""
    query = {
        "created[gte]": str(since // SECOND),
        "created[lte]": str(until // SECOND),
        "expand[]": "data.source",
    }
    too_many = ProviderAnswer.TOO_MANY_PAGES(day=Day.of(iso(since)[:10]), count=_MOST_PAGES)
    rows = await _listed(get, "/v1/balance_transactions", query, _MOST_PAGES, too_many)
    if isinstance(rows, Unknown):
        return rows
    lines: list[Line] = []
    for row in rows:
        source = row.get("source")
        if not isinstance(source, dict) or (kind := _kind(row, source)) is None:
            continue
        if kind == DISPUTE and _settled(row, source) is None:
            continue
        references = _references(source)
        if kind == REFUND and reference_in(source) is None:  # Somebody made it elsewhere: of which payment?
            charge = await _charge_of(get, source)
            if isinstance(charge, Unknown):
                return charge
            references = (*references, *_references(charge))
        lines.append(_line(len(lines) + 1, kind, row, source, references))
    return lines


async def _listed(
    get: Get, path: str, query: Mapping[str, str], most_pages: int, too_many: Message
) -> list[Body] | Unknown:
    """Every row of a list, newest first; Unknown when a page cannot be read, or with `too_many` when it has more."""
    query = {"limit": str(_PAGE), **query}
    all_rows: list[Body] = []
    for _ in range(most_pages):
        result = await get(path, query)
        page = result.ok_object()
        rows = page.get("data")
        if not isinstance(rows, list) or not all(isinstance(row, dict) and row.get("id") for row in rows):
            return Unknown(result.raw)
        all_rows += rows
        if page.get("has_more") is False:
            return all_rows
        if not rows:
            return Unknown(result.raw)
        query = {**query, "starting_after": str(rows[-1]["id"])}
    return Unknown(too_many)


async def _charge_of(get: Get, refund: Body) -> Body | Unknown:
    """The charge that a refund gives back; its metadata are those of our payment. Empty where it names none."""
    charge_id = text_or_none(refund.get("charge"))
    if charge_id is None:
        return {}
    result = await get(f"/v1/charges/{charge_id}", {})
    if not result.ok:
        return Unknown(result.raw)
    return result.ok_object()


def _kind(row: Body, source: Body) -> LineKind | None:
    """None for what moves no payment, refund or dispute: fees, our own payouts."""
    if source.get("object") == "dispute":
        return DISPUTE
    if row.get("reporting_category") == _PARTIAL_CAPTURE:
        return None
    if row.get("type") in _CHARGES:
        return PAYMENT
    failed = _FAILED_REFUND in (row.get("type"), row.get("reporting_category"))
    return REFUND if failed or row.get("type") in _REFUNDS else None


def _line(number: int, kind: LineKind, row: Body, source: Body, references: tuple[str, ...]) -> Line:
    """Amounts are those of the charge or refund. Where our balance is in another currency, `settled` says what it
    became there, and the fee is in that currency too."""
    currency = currency_of(source)
    same = currency_of(row) == currency
    return Line(
        number=number,
        kind=kind,
        references=references,
        amount=hundredths(source.get("amount"), currency),
        currency=currency,
        status=_status(row, source),
        at=instant(row.get("created")),
        fee=hundredths(row.get("fee"), currency) if same else None,
        settled=_settled(row, source),
    )


def _settled(row: Body, source: Body) -> Settled | None:
    """None where our balance is in the currency that was paid."""
    currency = next((code for code in CURRENCIES if code == currency_of(row)), None)
    amount, fee = hundredths(row.get("amount"), currency), hundredths(row.get("fee"), currency)
    if currency is None or currency == currency_of(source) or amount is None:
        return None
    return Settled(amount, fee or 0, currency)


def _status(row: Body, source: Body) -> LineStatus:
    """A refund that failed since is listed as made, and once more as come back: neither moved the money."""
    failed = _FAILED_REFUND in (row.get("type"), row.get("reporting_category"))
    if failed or (row.get("type") not in _CHARGES and source.get("status") in _FAILED_STATUSES):
        return "failed"
    return "succeeded"


def _references(source: Body) -> tuple[str, ...]:
    candidates = (reference_in(source), *(text_or_none(source.get(name)) for name in ("id", "payment_intent")))
    return tuple(reference for reference in candidates if reference)


async def list_disputes(get: Get, since: Instant) -> list[DisputeFacts] | Unknown:
    """Every dispute that was opened after `since`; Unknown when a page is missing or not readable."""
    query = {"created[gte]": str(since // SECOND), "expand[]": "data.payment_intent"}
    rows = await _listed(get, "/v1/disputes", query, _MOST_DISPUTE_PAGES, ProviderAnswer.TOO_MANY_DISPUTES())
    return rows if isinstance(rows, Unknown) else [facts for row in rows if (facts := _facts(row))]


def _facts(dispute: Mapping[str, Any]) -> DisputeFacts | None:
    """None for what cannot be read: it is read again at the next turn."""
    dispute_id, status = text_or_none(dispute.get("id")), _DISPUTE_STATUSES.get(str(dispute.get("status")))
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
