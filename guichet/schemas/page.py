"""The counters of a page of a list (docs/contract.md, "General")."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict


class MetaObject(TypedDict):
    """Les compteurs d'une liste paginée."""

    current_page: Annotated[int, Field(examples=[1], ge=1)]
    """Page répondue."""
    per_page: Annotated[int, Field(examples=[25], ge=1)]
    """Éléments par page."""
    total: Annotated[int, Field(examples=[1], ge=0)]
    """Éléments en tout."""
    last_page: Annotated[int, Field(examples=[1], ge=1)]
    """Dernière page, au moins 1."""


def page_meta(number: int, size: int, total: int) -> MetaObject:
    """The counters of page `number` (from 1) of pages of `size` items. `last_page` is at least 1 (D12)."""
    last = max(1, -(-total // size))
    return {"current_page": number, "per_page": size, "total": total, "last_page": last}
