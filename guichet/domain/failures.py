"""Why a payment fails: the reasons that the modules of the providers give, and what merchants and customers are told.

Sources: docs/contract.md, "Why a payment failed"; docs/providers/README.md, "Reasons for a refusal".
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from guichet.domain.records import Record

#: The short public list, on which merchants may branch.
FailureCode = Literal[
    "insufficient_funds", "rejected_by_customer", "expired", "limit_reached", "operator_unavailable", "other"
]
FAILURE_CODES: Final[tuple[FailureCode, ...]] = get_args(FailureCode)

#: Why something was refused, as it is stored.
RefusalReason = Literal[
    "insufficient_funds",
    "payer_not_found",
    "rejected_by_payer",
    "expired",
    "bad_otp",
    "limit_reached",
    "operator_unavailable",
    "configuration",
    "declined",
    "not_connected",
    "currency_not_accepted",
    "no_refund",
    "refused",
]


class Failure(Record, frozen=True):
    """What is told about a reason: a stable code, and a French sentence that can be shown to the customer."""

    code: FailureCode
    message: str


REFUSAL_REASONS: Final[dict[RefusalReason, Failure]] = {
    "insufficient_funds": Failure(
        "insufficient_funds",
        "Votre solde ne suffit pas pour ce paiement. Rechargez votre compte ou choisissez un autre moyen de paiement.",
    ),
    "payer_not_found": Failure(
        "other", "Ce numéro n'a pas de compte actif chez cet opérateur. Vérifiez le numéro, puis réessayez."
    ),
    "rejected_by_payer": Failure(
        "rejected_by_customer", "Le paiement a été refusé ou annulé sur le téléphone. Vous pouvez réessayer."
    ),
    "expired": Failure("expired", "Le paiement n'a pas été validé à temps. Réessayez."),
    "bad_otp": Failure(
        "other", "Le code de validation est incorrect ou a expiré. Demandez un nouveau code, puis réessayez."
    ),
    "limit_reached": Failure(
        "limit_reached",
        "Un plafond de votre compte est atteint. Choisissez un autre moyen de paiement ou réessayez plus tard.",
    ),
    "operator_unavailable": Failure(
        "operator_unavailable",
        "L'opérateur ne répond pas pour le moment. Réessayez dans quelques minutes ou choisissez un autre moyen de "
        "paiement.",
    ),
    "configuration": Failure(
        "operator_unavailable", "Ce moyen de paiement est momentanément indisponible. Choisissez-en un autre."
    ),
    "declined": Failure("other", "La banque a refusé la carte. Essayez une autre carte ou un autre moyen de paiement."),
    "not_connected": Failure(
        "operator_unavailable", "Ce moyen de paiement n'est pas encore disponible. Choisissez-en un autre."
    ),
    "currency_not_accepted": Failure(
        "other", "Ce moyen de paiement n'accepte pas cette devise. Choisissez-en un autre."
    ),
    "no_refund": Failure("other", "Aucun remboursement automatique n'existe pour ce moyen de paiement."),
    "refused": Failure("other", "Le paiement a été refusé. Réessayez ou choisissez un autre moyen de paiement."),
}

#: Why a refund failed, as merchants are told: a short list, on which they may branch.
RefundFailureCode = Literal[
    "insufficient_balance", "customer_account", "not_supported", "operator_unavailable", "other"
]
REFUND_FAILURE_CODES: Final[tuple[RefundFailureCode, ...]] = get_args(RefundFailureCode)


class RefundFailure(Record, frozen=True):
    """A stable code, and a French sentence for the merchant."""

    code: RefundFailureCode
    message: str


_CUSTOMER_ACCOUNT: Final = RefundFailure(
    "customer_account",
    "L'opérateur ne peut pas créditer ce client : compte inactif, ou plafond atteint. Rendez-lui l'argent autrement.",
)
_UNAVAILABLE: Final = RefundFailure(
    "operator_unavailable", "L'opérateur, ou notre liaison avec lui, n'a pas pu exécuter le remboursement."
)
_OTHER_REFUND: Final = RefundFailure(
    "other", "L'opérateur a refusé le remboursement. Rendez l'argent au client autrement."
)
_REFUND_FAILURES: Final[Mapping[RefusalReason, RefundFailure]] = {
    # Our own check: providers say of their float that it is empty, and are asked again.
    "insufficient_funds": RefundFailure(
        "insufficient_balance", "Votre solde ne couvre pas ce remboursement. Rien n'a été pris."
    ),
    "payer_not_found": _CUSTOMER_ACCOUNT,
    "limit_reached": _CUSTOMER_ACCOUNT,
    "no_refund": RefundFailure(
        "not_supported",
        "Aucun remboursement automatique n'existe pour ce moyen de paiement. Rendez l'argent au client autrement.",
    ),
    "operator_unavailable": _UNAVAILABLE,
    "configuration": _UNAVAILABLE,
    "not_connected": _UNAVAILABLE,
}

#: Reasons that are a fault of ours (a missing route, an account that the provider does not let in), never a refusal.
OUR_FAULTS: Final[frozenset[RefusalReason]] = frozenset({"configuration", "not_connected"})


def refund_failure_of(reason: str | None) -> RefundFailure:
    """As `failure_of`, of a refund."""
    known: Mapping[Any, RefundFailure] = _REFUND_FAILURES
    return known.get(reason, _OTHER_REFUND)


def failure_of(reason: str | None) -> Failure:
    """What is told about a stored reason; the general refusal for one that a newer or older version stored."""
    known: Mapping[Any, Failure] = REFUSAL_REASONS
    return known.get(reason, REFUSAL_REASONS["refused"])
