"""Every error that leaves Guichet, one class per stable code (docs/contract.md, "Errors").

GuichetError
├── Unauthorized            401 unauthorized
│   └── KeyExpired          401 key_expired
├── MerchantInactive        403 merchant_inactive
├── AddressNotAllowed       403 address_not_allowed
├── InsufficientScope       403 insufficient_scope
├── InvalidRequest          422 invalid_request       (carries `details`)
├── PaymentFailed           402 payment_failed
├── InsufficientFunds       402 insufficient_funds    (no endpoint emits it: D41)
├── PayoutFailed            402 payout_failed         (no endpoint emits it: D41)
├── PayoutLimitExceeded     403 payout_limit_exceeded (no endpoint emits it: D41)
├── NotFound                404 not_found
├── Conflict                409 conflict
├── MethodNotAllowed        405 method_not_allowed
├── RateLimited             429 rate_limited
└── ServerError             500 server_error

Messages are French sentences for people; clients branch on `code`, and on `reason` where there is one.
"""

from collections.abc import Mapping
from typing import ClassVar, Final, Literal, get_args

from guichet.domain.failures import FAILURE_CODES, FailureCode

Details = Mapping[str, list[str]]

#: Which rule of the state a 409 is about.
ConflictReason = Literal[
    "already_refunded",
    "not_refundable",
    "wallet_not_active",
    "dispute_open",
    "dispute_lost",
    "link_used_up",
    "idempotency_key_reused",
    "delivery_pending",
    "endpoint_disabled",
    "session_pending",
    "session_completed",
]
CONFLICT_REASONS: Final[tuple[ConflictReason, ...]] = get_args(ConflictReason)
#: What a `reason` can be: of a 402 why the payment failed, of a 409 which rule forbids the operation.
ErrorReason = FailureCode | ConflictReason
ERROR_REASONS: Final[tuple[ErrorReason, ...]] = (*FAILURE_CODES, *CONFLICT_REASONS)


class GuichetError(Exception):
    """An error with a stable `code`, an HTTP `status` and a French `message`.

    `reference`: that of the payment or refund which it is about, where the caller may not know it.
    """

    code: ClassVar[str]
    status: ClassVar[int]
    default: ClassVar[str]

    def __init__(
        self,
        message: str | None = None,
        details: Details | None = None,
        *,
        reason: ErrorReason | None = None,
        reference: str | None = None,
    ) -> None:
        self.message = message or self.default
        self.details = details
        self.reason = reason
        self.reference = reference
        super().__init__(self.message)


class Unauthorized(GuichetError):
    code = "unauthorized"
    status = 401
    default = "Clé d'API absente ou invalide. Envoyez l'en-tête « Authorization: Bearer <clé secrète> »."


class KeyExpired(Unauthorized):
    code = "key_expired"
    default = "Cette clé d'API a expiré. Créez-en une nouvelle."


class MerchantInactive(GuichetError):
    code = "merchant_inactive"
    status = 403
    default = "Le compte marchand n'est pas actif : les clés de production ne sont pas encore utilisables."


class AddressNotAllowed(GuichetError):
    code = "address_not_allowed"
    status = 403
    default = "Cette clé d'API n'est pas acceptée depuis cette adresse IP."


class InsufficientScope(GuichetError):
    code = "insufficient_scope"
    status = 403
    default = "Cette clé d'API ne permet pas cette opération : il faut une clé complète."


class InvalidRequest(GuichetError):
    code = "invalid_request"
    status = 422
    default = "La requête est invalide."


class PaymentFailed(GuichetError):
    code = "payment_failed"
    status = 402
    default = "L'opérateur a refusé le paiement. Le client peut réessayer ou choisir un autre moyen de paiement."


class InsufficientFunds(GuichetError):
    code = "insufficient_funds"
    status = 402
    default = "Le solde ne couvre pas ce retrait, frais compris. Rien n'a été prélevé."


class PayoutFailed(GuichetError):
    code = "payout_failed"
    status = 402
    default = "L'opérateur a refusé le versement ou est momentanément indisponible. Rien n'a été prélevé."


class PayoutLimitExceeded(GuichetError):
    code = "payout_limit_exceeded"
    status = 403
    default = "Le plafond de retrait sur 24 heures vers des tiers est atteint."


class NotFound(GuichetError):
    code = "not_found"
    status = 404
    default = "Ressource introuvable."


class Conflict(GuichetError):
    code = "conflict"
    status = 409
    default = "L'état actuel de la ressource ne permet pas cette opération."


class MethodNotAllowed(GuichetError):
    code = "method_not_allowed"
    status = 405
    default = "Cette méthode HTTP n'est pas acceptée sur cette adresse."


class RateLimited(GuichetError):
    code = "rate_limited"
    status = 429
    default = "Trop de requêtes depuis cette adresse. Réessayez dans un instant."


class ServerError(GuichetError):
    code = "server_error"
    status = 500
    default = "Un incident est survenu de notre côté. Réessayez dans quelques instants."


def _tree(root: type[GuichetError]) -> list[type[GuichetError]]:
    return [error_type for child in root.__subclasses__() for error_type in (child, *_tree(child))]


#: The error class of each code.
BY_CODE: dict[str, type[GuichetError]] = {error.code: error for error in _tree(GuichetError)}


def fault(field: str, message: str, summary: str | None = None) -> InvalidRequest:
    """A 422 about one field. `summary` is the sentence of the whole error, by default the same as the field's."""
    return InvalidRequest(summary or message, {field: [message]})
