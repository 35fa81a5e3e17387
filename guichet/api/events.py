"""GET /events (docs/contract.md, "Events")."""

from functools import partial
from typing import Final

from msgspec import Raw
from starlette.responses import Response

from guichet.api.endpoint import CREATED_FROM, CREATED_TO, PER_PAGE, Endpoint, Parameter
from guichet.api.http import Call, SuccessResponse, requested_choice, requested_page, requested_range
from guichet.domain.errors import InvalidRequest
from guichet.domain.events import EVENT_NAMES
from guichet.schemas.notification import EventObject
from guichet.webhooks import events
from guichet.webhooks.events import LISTED_DAYS, EventFilter


async def list_events(call: Call) -> Response:
    """The oldest first: what their webhooks carry, byte for byte."""
    faults: dict[str, list[str]] = {}
    name = requested_choice(call.query, "type", EVENT_NAMES, faults)
    since, until = requested_range(call.query, faults)
    page = requested_page(call.query, faults)
    after = await page.row_before(partial(call.find, events.by_reference))
    now = call.ctx.clock.now()
    # One more than asked for tells whether there are more.
    rows = await events.page(
        call.ctx.db, call.merchant_id, call.env, EventFilter(name, since, until), page.size + 1, now, after
    )
    bodies = [Raw(body.encode()) for body in rows[: page.size]]
    return SuccessResponse(bodies, meta={"per_page": page.size, "has_more": len(rows) > page.size})


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/events",
        list_events,
        "Lister les événements",
        f"Tout ce qui est arrivé depuis {LISTED_DAYS} jours, **du plus ancien au plus récent** : les mêmes `id` et les "
        "mêmes corps que les webhooks, aussi pour un compte sans point de terminaison. Après une panne, reprenez avec "
        "`after` : "
        "l'`id` du dernier événement que cette liste vous a donné, et non celui d'un webhook, qui a pu en dépasser "
        "d'autres. Un événement apparaît quelques instants après le changement d'état, et "
        "jamais avant un autre qui a déjà été montré : un parcours n'en saute aucun.",
        EventObject,
        shape="walk",
        parameters=(
            Parameter("type", "Nom de l'événement.", {"type": "string", "enum": list(EVENT_NAMES)}),
            CREATED_FROM,
            CREATED_TO,
            PER_PAGE,
            Parameter(
                "after",
                "Commence juste après cet événement, nommé par son `id`. Le parcours est fini quand `meta.has_more` "
                "vaut `false` ; reprenez plus tard avec le même `after`.",
            ),
        ),
        errors=(InvalidRequest,),
    ),
)
