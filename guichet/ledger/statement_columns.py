"""Which column of a provider's statement holds what, and what the words in it mean."""

from typing import Final

from guichet.domain.reconciliation import PAYMENT, REFUND

FIELDS: Final = ("reference", "type", "amount", "currency", "status", "date")
#: By provider, the columns of each field besides the field's own name (docs/providers/README.md, "Statements"). All
#: reference columns in the file are used; of other fields the first one found.
PRESETS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "feexpay": {"reference": ("callback_info", "financial_transaction_id", "custom_id")},
    "mtn": {
        "reference": ("externalId", "financialTransactionId", "referenceId", "X-Reference-Id"),
    },
    "wave": {
        "reference": ("client_reference", "id", "transaction_id"),
        "amount": ("receive_amount",),
        "status": ("payment_status",),
        "date": ("when_completed", "timestamp"),
    },
    "pawapay": {
        "reference": ("depositId", "refundId", "payoutId", "clientReferenceId", "providerTransactionId"),
        "date": ("created",),
    },
    "orange": {"reference": ("order_id", "txnid", "pay_token")},
    "sonatel": {"reference": ("transactionId", "requestId")},
    "stripe": {
        "reference": ("client_reference_id", "payment_intent", "id", "source"),
        "status": ("payment_status",),
        "date": ("created", "created (utc)"),
    },
}
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
