"""The envelope of an error (docs/contract.md, "Errors")."""

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from guichet.domain.errors import BY_CODE, ERROR_REASONS, ErrorReason, GuichetError
from guichet.schemas.object_fields import PAYMENT_REFERENCE, Uuid, example, open_enum


class FailureObject(TypedDict):
    """Ce qui a été refusé, ou ce qui n'a pas fonctionné."""

    code: Annotated[str, open_enum(*BY_CODE), example("invalid_request")]
    """Identifiant stable : c'est sur lui que votre code décide. Traitez un code inconnu comme un incident passager."""
    message: Annotated[str, example("Il manque des informations pour payer avec Visa.")]
    """Phrase en français, pour les humains. Elle peut changer sans préavis."""
    details: NotRequired[dict[str, Annotated[list[str], Field(min_length=1)]]]
    """Champ → messages, pour les erreurs de validation seulement. Les champs imbriqués s'écrivent avec un point
    (`customer.email`)."""
    reason: NotRequired[Annotated[ErrorReason, open_enum(*ERROR_REASONS), example("already_refunded")]]
    """Avec `402` et `409` : pourquoi le paiement a échoué, ou quelle règle interdit l'opération. Identifiant stable,
    dont la liste peut s'allonger."""
    reference: NotRequired[Annotated[Uuid, example(PAYMENT_REFERENCE)]]
    """Le paiement enregistré `failed` (`402`, et `500` si un paiement a été enregistré), ou le remboursement qui existe
    déjà (`409 already_refunded`)."""


class ErrorEnvelopeObject(TypedDict):
    """L'enveloppe de toute réponse d'erreur."""

    success: bool
    """Toujours `false`."""
    error: FailureObject


def error_object(error: GuichetError) -> ErrorEnvelopeObject:
    failure: FailureObject = {"code": error.code, "message": error.message}
    if error.details:
        failure["details"] = dict(error.details)
    if error.reason is not None:
        failure["reason"] = error.reason
    if error.reference is not None:
        failure["reference"] = error.reference
    return {"success": False, "error": failure}
