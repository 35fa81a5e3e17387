"""What stands beside `data` in the envelope of a success (docs/contract.md, "General")."""

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from guichet.domain.warnings import SENTENCES
from guichet.schemas.object_fields import open_enum


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


def page_meta(number: int, size: int, total: int) -> MetaObject:
    """The counters of page `number` (from 1) of pages of `size` items. `last_page` is at least 1 (D12)."""
    last = max(1, -(-total // size))
    return {"current_page": number, "per_page": size, "total": total, "last_page": last}
