"""For the tests of a shop: Guichet as it answered when it was recorded, without a network."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from pathlib import Path
from typing import Any

import httpx

from guichet_sdk import AsyncGuichet, Guichet

_RECORDINGS = json.loads((Path(__file__).parent / "recordings.json").read_text(encoding="utf-8"))
SECRET = "whsec_" + "A" * 40


class FakeGuichet:
    """Gives each call its recorded answer; `requests` has what was sent: (method, path, decoded body)."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, Any]] = []
        self._next: list[dict[str, Any]] = []

    def client(self, key: str = "sk_test_fake", **options: Any) -> Guichet:
        http_client = httpx.Client(transport=httpx.MockTransport(self._answer))
        return Guichet(key, base_url="https://fake.test/v1", http_client=http_client, **options)

    def async_client(self, key: str = "sk_test_fake", **options: Any) -> AsyncGuichet:
        http_client = httpx.AsyncClient(transport=httpx.MockTransport(self._answer))
        return AsyncGuichet(key, base_url="https://fake.test/v1", http_client=http_client, **options)

    def fail_next(self, code: str) -> None:
        """The next request is answered with this error, for example `payment_failed`."""
        self._next.append(_RECORDINGS["errors"][code])

    def webhook(self, event: str, secret: str = SECRET, **data: Any) -> tuple[bytes, dict[str, str]]:
        """(body, headers) of the recorded event, signed now; `data` replaces fields of its object."""
        recorded = _RECORDINGS["events"][event]
        body = json.dumps({**recorded, "data": {**recorded["data"], **data}}, ensure_ascii=False).encode()
        timestamp = str(int(time.time()))
        key = base64.b64decode(secret.removeprefix("whsec_"))
        mac = hmac.new(key, f"{recorded['id']}.{timestamp}.".encode() + body, hashlib.sha256).digest()
        return body, {
            "webhook-id": recorded["id"],
            "webhook-timestamp": timestamp,
            "webhook-signature": f"v1,{base64.b64encode(mac).decode()}",
        }

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/v1")
        self.requests.append((request.method, path, json.loads(request.content or b"null")))
        answer = self._next.pop(0) if self._next else _recorded(request.method, path)
        return httpx.Response(answer["status"], json=answer["body"], headers={"X-Request-Id": "fake"})


def _recorded(method: str, path: str) -> Any:
    """The answer of the route whose segments are these, a braced one being any."""
    segments = [method, *path.split("/")]
    for route, answer in _RECORDINGS["answers"].items():
        verb, template = route.split(" ")
        pattern = [verb, *template.split("/")]
        if len(pattern) == len(segments) and all(
            a == b or a[:1] == "{" for a, b in zip(pattern, segments, strict=True)
        ):
            return answer
    return _RECORDINGS["errors"]["not_found"]
