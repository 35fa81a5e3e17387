"""Which column of a provider's statement holds what, and what the words in it mean."""

from typing import Final

from guichet.domain.reconciliation import PAYMENT, REFUND

FIELDS: Final = ("reference", "type", "amount", "currency", "status", "date")
IGNORED: Final = "ignore"
#: The meaning of words in the columns `type` and `status`; `--word` adds others.
WORDS: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            "payment",
            "payin",
            "deposit",
            "collection",
            "charge",
            "encaissement",
            "payment_api",
            "feex_link",
            "feex_page",
        ),
        PAYMENT,
    ),
    **dict.fromkeys(("refund", "payout", "reversal", "remboursement", "payout_api"), REFUND),
    **dict.fromkeys(("succeeded", "successful", "success", "completed", "complete", "paid", "found"), "succeeded"),
    **dict.fromkeys(("failed", "cancelled", "canceled", "rejected", "expired", "unpaid", "reversed"), "failed"),
    **dict.fromkeys(
        ("pending", "processing", "accepted", "enqueued", "in_reconciliation", "initiated", "open", "created"),
        "pending",
    ),
}
MEANINGS: Final = (PAYMENT, REFUND, "succeeded", "failed", "pending", IGNORED)
#: What a word in the column may mean.
MEANINGS_OF: Final = {
    "type": (PAYMENT, REFUND, IGNORED),
    "status": ("succeeded", "failed", "pending", IGNORED),
}
