"""The envelope of every answer (docs/contract.md, "General", "Errors", "Warnings"): what stands beside `data` in a
success, what a success can warn of, and an error.

A warning is for the developer who reads the answer. The request was carried out all the same.
"""

from typing import Annotated, Final, Literal, NotRequired

from msgspec.json import encode
from pydantic import Field
from typing_extensions import TypedDict

from guichet.domain.errors import BY_CODE, ERROR_REASONS, ErrorReason, GuichetError
from guichet.domain.records import Record
from guichet.schemas.object_fields import PAYMENT_REFERENCE, Uuid, example, open_enum

WarningCode = Literal[
    "replay_differs",
    "session_differs",
    "phone_country_mismatch",
    "currency_not_accepted_live",
    "external_id_spaces",
    "no_external_id",
    "unknown_status",
    "link_already_expired",
    "webhook_address_not_public",
]

#: The French sentence of each stable code, with the names of the facts that it states.
SENTENCES: Final[dict[WarningCode, str]] = {
    "replay_differs": "Un paiement porte déjà cet external_id : il est rendu tel quel, et rien n'a été créé. Il "
    "diffère de votre requête : {differences}.",
    "session_differs": "Une session porte déjà cet external_id : elle est rendue telle quelle, et rien n'a été créé. "
    "Elle diffère de votre requête : {differences}.",
    "phone_country_mismatch": "phone_number ({phone_number}) n'est pas un numéro de {country} écrit avec son indicatif "
    "({dial_code}), que demande {operator} : l'opérateur peut ne pas trouver le client.",
    "currency_not_accepted_live": "En production, ce paiement serait refusé : {operator} n'y encaisse pas en "
    "{currency}.",
    "external_id_spaces": "external_id contient des espaces au début, à la fin, répétées ou invisibles. Il est "
    "conservé tel quel : vous ne le retrouverez qu'écrit exactement ainsi.",
    "no_external_id": "Cette requête n'a ni external_id ni en-tête Idempotency-Key : répétée, après un délai dépassé "
    "par exemple, elle débiterait le client une seconde fois.",
    "unknown_status": "Aucun paiement n'a le statut {status} : ce sont les paiements « pending » qui sont rendus. Les "
    "statuts sont {statuses}.",
    "link_already_expired": "Ce lien est déjà fermé : expires_at ({expires_at}) est passé. Personne ne pourra payer.",
    "webhook_address_not_public": "{host} est introuvable dans le DNS ou ne mène à aucune adresse publique : aucun "
    "webhook n'y sera envoyé tant qu'il en est ainsi.",
}


class RequestWarning(Record, frozen=True):
    """One entry of `warnings` in the envelope of a success."""

    code: WarningCode
    message: str


def warning(code: WarningCode, **facts: object) -> RequestWarning:
    """The warning with its sentence, which states `facts`."""
    return RequestWarning(code, SENTENCES[code].format_map(facts))


class IgnoredParametersObject(TypedDict):
    """Ce que la réponse dit de votre requête, en dehors des listes."""

    ignored: NotRequired[list[str]]
    """Paramètres de l'adresse qui n'ont pas été lus : inconnus, ou `status` d'une valeur inconnue, lu comme `pending`.
    Absent quand tout a été lu."""


class MetaObject(IgnoredParametersObject):
    """Les compteurs d'une liste paginée."""

    current_page: Annotated[int, Field(examples=[1], ge=1)]
    """Page répondue ; toujours 1 avec `after`."""
    per_page: Annotated[int, Field(examples=[25], ge=1)]
    """Éléments par page."""
    total: Annotated[int, Field(examples=[1], ge=0)]
    """Éléments en tout, quelle que soit la page."""
    last_page: Annotated[int, Field(examples=[1], ge=1)]
    """Dernière page, au moins 1."""


class WalkMetaObject(IgnoredParametersObject):
    """Où en est le parcours d'une liste qui ne se lit que par `after`."""

    per_page: Annotated[int, Field(examples=[25], ge=1)]
    """Éléments par page."""
    has_more: Annotated[bool, Field(examples=[False])]
    """`true` : continuez avec l'`id` du dernier élément dans `after`."""


class RequestWarningObject(TypedDict):
    """Ce qui mérite votre attention dans une requête pourtant acceptée."""

    code: Annotated[str, open_enum(*SENTENCES)]
    """Identifiant stable ; il peut s'en ajouter."""
    message: str
    """Phrase en français, pour les humains. Elle peut changer sans préavis."""


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


def failure(error: GuichetError) -> bytes:
    """The body of an error."""
    return encode(error_object(error))
