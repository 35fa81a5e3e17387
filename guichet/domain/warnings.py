"""What a success can warn of (docs/contract.md, "Warnings"): each stable code with its French sentence.

A warning is for the developer who reads the answer. The request was carried out all the same.
"""

from typing import Final, Literal

from guichet.domain.records import Record

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

#: Each sentence, with the names of the facts that it states.
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
