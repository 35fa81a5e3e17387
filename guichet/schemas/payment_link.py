"""A payment link, and the body that creates one (docs/contract.md, "Resources" and "Requests")."""

import unicodedata
from typing import Annotated, Final, Literal

from msgspec import Raw
from pydantic import BeforeValidator, Field, ValidationInfo, field_validator
from typing_extensions import TypedDict

from guichet.clock import Instant, iso
from guichet.domain.money import number
from guichet.domain.payment_links import LIMITED, LINK_TYPES, PERMANENT, LinkType, PaymentLink
from guichet.domain.records import iso_or_none
from guichet.schemas import body_fields, stated_fields
from guichet.schemas.body_fields import Date, Metadata
from guichet.schemas.object_fields import (
    CREATED_AT,
    LINK_URL,
    Number,
    RawJsonObject,
    Timestamp,
    Url,
    example,
    text_schema,
)
from guichet.schemas.validation import Amount, Body, ExternalId, Integer, Text255, refuse

_MAX_USES: Final = 2**31 - 1
_DECOMPOSED: Final = (
    "Le é de limité est écrit en deux caractères (e suivi de l'accent U+0301) : envoyez le caractère é (U+00E9), "
    "c'est-à-dire le texte normalisé en NFC."
)


class PaymentLinkObject(TypedDict):
    """Un lien vers une page de paiement hébergée, à montant et libellé fixes."""

    id: Annotated[int, example(1)]
    """Identifiant numérique, pour `GET /payment-links/{id}`. Ce n'est pas le fragment aléatoire de `url`."""
    url: Annotated[Url, example(LINK_URL)]
    """Adresse publique à partager. Elle est impossible à deviner ; qui la possède peut ouvrir la page."""
    type: Annotated[LinkType, text_schema(enum=list(LINK_TYPES)), example("limité")]
    """`permanent` ou `limité` (avec l'accent)."""
    amount: Annotated[Number, example(10000)]
    """Ce que vous encaissez à chaque paiement, dans la devise par défaut de votre compte."""
    description: Annotated[str, example("Cotisation 2026")]
    """Libellé montré au client."""
    max_uses: Annotated[int | None, example(50)]
    """Nombre d'utilisations permises ; `null` pour un lien permanent."""
    uses_count: Annotated[int, example(0)]
    """Paiements aboutis par ce lien. Peut dépasser `max_uses` si un client valide très tard."""
    uses_left: Annotated[int | None, example(50)]
    """Utilisations restantes, jamais moins de 0 ; toujours `null` pour un lien permanent."""
    starts_at: Annotated[Timestamp | None, example(None)]
    """Ouverture ; `null` : dès la création."""
    expires_at: Annotated[Timestamp | None, example("2026-12-31T23:59:59.000000Z")]
    """Fermeture ; `null` : jamais."""
    created_at: Annotated[Timestamp, example(CREATED_AT)]
    """Date de création."""
    external_id: Annotated[str | None, example("cotisation-2026")]
    """Votre identifiant du lien ; `null` s'il n'a pas été envoyé."""
    metadata: Annotated[RawJsonObject | None, example({"association": 7})]
    """Exactement ce que vous avez envoyé, octet pour octet, comme dans chacun de ses paiements ; `null` sinon."""
    return_url: Annotated[Url | None, example("https://boutique.example/merci")]
    """Page où le client revient après le paiement ; `null` si elle n'a pas été envoyée."""


def _type(value: object) -> object:
    """The default for null. A `limité` whose accent is a character of its own looks right, and is refused (D18)."""
    if isinstance(value, str) and value != LIMITED and unicodedata.normalize("NFC", value) == LIMITED:
        raise refuse(_DECOMPOSED)
    return PERMANENT if value is None else value


class LinkBody(Body):
    """POST /payment-links."""

    misread = stated_fields.LINK

    amount: Amount
    """Ce que vous encaissez à chaque paiement, dans la devise par défaut de votre compte."""
    description: Text255
    """Libellé montré au client."""
    type: Annotated[Literal["permanent", "limité"], BeforeValidator(_type)] = "permanent"
    """`limité` s'écrit avec l'accent, en UTF-8 ; toute autre écriture est refusée."""
    max_uses: Annotated[Integer | None, Field(json_schema_extra={"minimum": 1, "maximum": _MAX_USES})] = None
    """Nombre d'utilisations. Obligatoire pour un lien `limité`, ignoré sinon."""
    starts_at: Date = None
    """Ouverture. Sans fuseau, la date est lue en UTC."""
    expires_at: Date = None
    """Fermeture, postérieure à `starts_at`."""
    external_id: Annotated[ExternalId | None, Field(examples=["cotisation-2026"])] = None
    """Votre identifiant du lien, unique parmi vos liens. Il rend l'appel rejouable : répété, il rend le lien existant
    et ne crée rien. Chaque paiement du lien le rappelle dans `payment_link`."""
    metadata: Metadata = None
    """Données libres, rendues telles quelles dans le lien, dans ses paiements et dans leurs webhooks."""
    return_url: body_fields.Url | None = None
    """Page vers laquelle la page de paiement renvoie le client à la fin (http ou https) ; `reference` et `status` y
    sont ajoutés."""

    @field_validator("max_uses", mode="before")
    @classmethod
    def _only_when_limited(cls, value: object, info: ValidationInfo) -> object:
        return value if info.data.get("type") == LIMITED else None

    @field_validator("max_uses")
    @classmethod
    def _enough_uses(cls, value: int | None, info: ValidationInfo) -> int | None:
        if info.data.get("type") != LIMITED:
            return None
        if value is None:
            raise refuse(f"Ce champ est obligatoire pour un lien de type {LIMITED}.")
        if not 1 <= value <= _MAX_USES:
            raise refuse(f"La valeur doit être comprise entre 1 et {_MAX_USES}.")
        return value

    @field_validator("expires_at")
    @classmethod
    def _in_order(cls, value: Instant | None, info: ValidationInfo) -> Instant | None:
        starts_at = info.data.get("starts_at")
        if value is not None and starts_at is not None and value <= starts_at:
            raise refuse("La fermeture doit être postérieure à l'ouverture (starts_at).")
        return value


def payment_link_object(link: PaymentLink, pages_url: str) -> PaymentLinkObject:
    """`pages_url` is the public address of the link pages, without a slash at its end."""
    return {
        "id": link.id,
        "url": f"{pages_url}/{link.path}",
        "type": link.type,
        "amount": number(link.amount),
        "description": link.description,
        "max_uses": link.max_uses,
        "uses_count": link.uses_count,
        "uses_left": link.uses_left,
        "starts_at": iso_or_none(link.starts_at),
        "expires_at": iso_or_none(link.expires_at),
        "created_at": iso(link.created_at),
        "external_id": link.external_id,
        "metadata": None if link.metadata is None else Raw(link.metadata.encode()),
        "return_url": link.return_url,
    }
