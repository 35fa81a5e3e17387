"""Endpoints of events."""

from typing import Final

from guichet.api import events
from guichet.api.endpoints.endpoint import CREATED_FROM, CREATED_TO, Endpoint, Parameter, per_page
from guichet.domain.errors import InvalidRequest
from guichet.domain.events import EVENT_NAMES
from guichet.schemas.notification import EventObject
from guichet.webhooks.events import LISTED_DAYS

EVENTS: Final = "Journal des événements"

ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/events",
        events.list_events,
        EVENTS,
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
            Parameter("type", {"type": "string", "enum": list(EVENT_NAMES)}, "Nom de l'événement."),
            CREATED_FROM,
            CREATED_TO,
            per_page(),
            Parameter(
                "after",
                {"type": "string"},
                "Commence juste après cet événement, nommé par son `id`. Le parcours est fini quand `meta.has_more` "
                "vaut `false` ; reprenez plus tard avec le même `after`.",
            ),
        ),
        errors=(InvalidRequest,),
    ),
)
