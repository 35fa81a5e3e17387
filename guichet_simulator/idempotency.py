"""Idempotency keys: the first response is stored and given again (Stripe, Wave payouts)."""

import hashlib
import json

from starlette.responses import Response

from guichet_simulator.http_helpers import json_response
from guichet_simulator.store import Store


class IdempotencyKeyReused(Exception):
    """The key was used before with other parameters."""


def fingerprint(path: str, body: object) -> str:
    """The same for the same parameters of the same call."""
    return hashlib.sha256(json.dumps([path, body], sort_keys=True).encode()).hexdigest()


def stored_response(store: Store, provider: str, *, key: str, fingerprint: str) -> Response | None:
    """The first response to this key; None for a new key. Raises IdempotencyKeyReused."""
    found = store.rows("SELECT * FROM idempotency_keys WHERE provider = ? AND key = ?", provider, key)
    if not found:
        return None
    if found[0]["fingerprint"] != fingerprint:
        raise IdempotencyKeyReused(key)
    return json_response(json.loads(found[0]["body"]), found[0]["status"], {"Idempotent-Replayed": "true"})


def store_response(store: Store, provider: str, response: Response, *, key: str, fingerprint: str) -> Response:
    """Store the first response to this key, and return it."""
    body = bytes(response.body).decode()
    values = {
        "provider": provider, "key": key, "fingerprint": fingerprint, "status": response.status_code, "body": body,
    }  # fmt: skip
    store.insert("idempotency_keys", values)
    return response
