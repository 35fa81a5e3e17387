"""What the table of endpoints says of each of them."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal

from msgspec import field
from starlette.responses import Response

from guichet.api.http import DEFAULT_PER_PAGE, MAX_KEY, MAX_PER_PAGE, ORDERS, Call
from guichet.domain.errors import GuichetError
from guichet.domain.records import Record
from guichet.schemas.validation import Body

Handler = Callable[[Call], Awaitable[Response]]
#: The class (a TypedDict) of an object that is answered.
ObjectClass = type[Any]
Example = Mapping[str, Any]


class Parameter(Record, frozen=True):
    """A path or query parameter, or a header. `schema` is its JSON Schema, `sample` its value in the examples."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    where: Literal["query", "path", "header"] = "query"
    sample: str | None = None


class Endpoint(Record, frozen=True):
    """One line of the contract's table of endpoints; `path` is relative to the API's base URL.

    `data` is the object answered; `shape` says whether one, an array, a page of them or a page that only `after`
    continues is. `requests` are whole example bodies by title, and tests send each of them.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    description: str
    data: ObjectClass
    status: int = 200
    shape: Literal["one", "array", "page", "walk"] = "one"
    body: type[Body] | None = None
    parameters: tuple[Parameter, ...] = ()
    errors: tuple[type[GuichetError], ...] = ()
    requests: Mapping[str, Example] = field(default_factory=dict)


_DATES: Final = "`AAAA-MM-JJ` ou ISO-8601, UTC sans autre indication, comparée à `created_at` et incluse."
CREATED_FROM: Final = Parameter("from", f"Début : {_DATES}", sample="2026-11-01")
CREATED_TO: Final = Parameter(
    "to",
    f"Fin : {_DATES} Une date seule est ce jour à 00:00:00, ce qui exclut les éléments du jour : envoyez le lendemain "
    "ou un horodatage complet.",
    sample="2026-12-01",
)
PER_PAGE: Final = Parameter(
    "per_page",
    "Éléments par page.",
    {"type": "integer", "minimum": 1, "maximum": MAX_PER_PAGE, "default": DEFAULT_PER_PAGE},
)


def paging(after: str) -> tuple[Parameter, ...]:
    """`after`: what the element before a page is called."""
    return (
        PER_PAGE,
        # No default: generated clients would send it with `after`.
        Parameter(
            "page",
            "Numéro de page, 1 sans autre indication. Au-delà de la dernière, la liste est vide. Avec `after`, seul 1 "
            "est accepté.",
            {"type": "integer", "minimum": 1},
        ),
        Parameter(
            "order",
            "`desc` : les plus récents d'abord ; `asc` : les plus anciens d'abord.",
            {"type": "string", "enum": list(ORDERS), "default": ORDERS[0]},
        ),
        Parameter(
            "after",
            f"Commence juste après cet élément : {after}. Un parcours avec `after` ne saute ni ne répète rien, quoi "
            "qu'il arrive entre deux pages ; il est fini quand une page compte moins de `per_page` éléments.",
        ),
    )


IDEMPOTENCY_KEY: Final = Parameter(
    "Idempotency-Key",
    "Nomme cette requête, un UUID par exemple : répétée avec la même clé dans les 24 heures, elle ne crée rien de plus "
    "et rend la ressource telle qu'elle est. Avec un autre corps : `409`, `idempotency_key_reused`.",
    {"type": "string", "minLength": 1, "maxLength": MAX_KEY},
    where="header",
)

PAYMENT_REFERENCE: Final = Parameter(
    "reference",
    "La référence du paiement, ou votre `external_id` encodé pour une adresse (`/` devient `%2F`).",
    where="path",
    sample="commande-1042",
)
