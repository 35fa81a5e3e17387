"""Idempotency keys: the first answer is kept and given again (Stripe, Wave payouts)."""

import hashlib
import json

from starlette.responses import Response

from guichet_simulator.base import json_answer
from guichet_simulator.store import Store


class KeyReused(Exception):
    """The key came before, with other parameters."""


def fingerprint(path: str, body: object) -> str:
    return hashlib.sha256(json.dumps([path, body], sort_keys=True).encode()).hexdigest()


def replayed(store: Store, family: str, key: str, mark: str) -> Response | None:
    """The first answer to this key, None if it is new; raises KeyReused."""
    found = store.rows("SELECT * FROM replays WHERE family = ? AND key = ?", family, key)
    if not found:
        return None
    if found[0]["fingerprint"] != mark:
        raise KeyReused(key)
    return json_answer(json.loads(found[0]["body"]), found[0]["status"], {"Idempotent-Replayed": "true"})


def remember(store: Store, family: str, key: str, mark: str, answer: Response) -> Response:
    body = bytes(answer.body).decode()
    values = {"family": family, "key": key, "fingerprint": mark, "status": answer.status_code, "body": body}
    store.insert("replays", values)
    return answer
