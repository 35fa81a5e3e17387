"""Idempotency keys: the first response to each is stored, and given again to a repeat."""

import hashlib
import json

from starlette.responses import Response

from guichet_simulator.http_helpers import ErrorResponse, Refused, json_response
from guichet_simulator.transactions import ProviderTransactions


class IdempotencyKey:
    """One key of one call; None where the client gave none. The parameters of a repeat must be those of the first call,
    or `mismatch` refuses it."""

    def __init__(
        self, api: ProviderTransactions, key: str | None, call: str, parameters: object, mismatch: ErrorResponse
    ) -> None:
        self._store = api.ctx.store
        self._provider = api.name
        company = api.dashboard.company
        #: Another account may use the same one for itself.
        self._key = f"{company}/{key}" if key and company else key
        self._fingerprint = hashlib.sha256(json.dumps([call, parameters], sort_keys=True).encode()).hexdigest()
        self._mismatch = mismatch

    def first_response(self) -> Response | None:
        """Even if it was lost; None for a new key. Raises Refused."""
        where = "SELECT * FROM idempotency_keys WHERE provider = ? AND key = ?"
        rows = self._store.rows(where, self._provider, self._key)
        if not rows:
            return None
        if rows[0]["fingerprint"] != self._fingerprint:
            raise Refused(self._mismatch)
        return json_response(json.loads(rows[0]["body"]), rows[0]["status"], {"Idempotent-Replayed": "true"})

    def respond(self, payload: object) -> Response:
        """The first response, which is stored."""
        response = json_response(payload)
        if self._key is not None:
            values = {"provider": self._provider, "key": self._key, "fingerprint": self._fingerprint}
            body = bytes(response.body).decode()
            self._store.insert("idempotency_keys", {**values, "status": response.status_code, "body": body})
        return response
