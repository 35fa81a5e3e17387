"""Which scopes of a key open which route: the one table (docs/contract.md, "Scopes"). A route that is not in it does
not exist (`api/app.py`)."""

from collections.abc import Mapping
from typing import Final

from guichet.domain.errors import InsufficientScope
from guichet.domain.key_access import KEY_SCOPES, KeyScope, scopes_of

#: Method and path → the scopes of which a key needs one.
SCOPES: Final[Mapping[tuple[str, str], tuple[KeyScope, ...]]] = {
    ("POST", "/payments"): ("payments:write",),
    ("GET", "/payments"): ("payments:read",),
    ("GET", "/payments/{reference}"): ("payments:read",),
    ("POST", "/payments/{reference}/refund"): ("refunds",),
    ("POST", "/payments/{reference}/refund-proposal"): ("refunds:propose", "refunds"),
    ("GET", "/payments/{reference}/refund-proposal"): ("refunds:propose", "refunds", "payments:read"),
    ("GET", "/refunds"): ("refunds", "payments:read"),
    ("GET", "/refunds/{reference}"): ("refunds", "payments:read"),
    ("POST", "/payment-links"): ("links",),
    ("GET", "/payment-links"): ("links",),
    ("GET", "/payment-links/{id}"): ("links",),
    ("POST", "/payment-links/{id}/close"): ("links",),
    ("POST", "/checkout-sessions"): ("links",),
    ("GET", "/checkout-sessions/{id}"): ("links",),
    ("POST", "/checkout-sessions/{id}/expire"): ("links",),
    ("GET", "/payment-modes"): KEY_SCOPES,
    ("POST", "/payment-modes/fees"): KEY_SCOPES,
    ("GET", "/balance"): KEY_SCOPES,
    ("GET", "/webhooks/endpoint"): ("webhooks",),
    ("PUT", "/webhooks/endpoint"): ("webhooks",),
    ("POST", "/webhooks/test"): ("webhooks",),
    ("GET", "/webhooks/deliveries"): ("webhooks",),
    ("POST", "/webhooks/deliveries/{id}/resend"): ("webhooks",),
    ("GET", "/events"): ("webhooks",),
    ("GET", "/disputes"): ("payments:read",),
}


def insufficient_scope(required: int) -> InsufficientScope:
    """The refusal of a key that has none of these bits."""
    names = " ou ".join(f"« {scope} »" for scope in scopes_of(required) or ())
    return InsufficientScope(f"Cette clé d'API ne permet pas cette opération : il lui faut la portée {names}.")


def description(method: str, path: str) -> str:
    """What the OpenAPI document says about the route's scopes, in Markdown."""
    scopes = SCOPES[method, path]
    if scopes == KEY_SCOPES:
        return "Portée : toute clé."
    return f"Portée : {' ou '.join(f'`{scope}`' for scope in scopes)}."
