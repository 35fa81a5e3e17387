"""What a merchant's webhook server received, decoded and checked against docs/contract.md."""

from dataclasses import dataclass
from typing import Any

import msgspec

from guichet.webhooks.sender import verify
from tests.contract.shapes import check_resource
from tests.contract.tables import Row, table
from tests.fakes.http_server import ReceivedRequest, ScriptedServer
from tests.service_fixture import MerchantClient

_DATA = {row["Event"]: row["Data"] for row in table("events")}
_HEADERS: list[Row] = table("webhook-headers")


@dataclass(frozen=True)
class Notification:
    """A delivery that was checked: envelope, resource, headers, signature."""

    event: str
    id: str
    livemode: bool
    data: Any


def notifications(server: ScriptedServer, secret: str, now: int) -> list[Notification]:
    """Everything received so far, in the order of arrival; `now` in Unix seconds."""
    return [_checked(received, secret, now) for received in server.received]


def _checked(received: ReceivedRequest, secret: str, now: int) -> Notification:
    body = check_resource("webhook-envelope", msgspec.json.decode(received.body))
    headers = received.headers
    assert received.line.startswith("POST ")
    assert {row["Header"].lower() for row in _HEADERS} <= set(headers)
    assert (headers["x-service-event"], headers["x-service-delivery"]) == (body["event"], body["id"])
    for row in _HEADERS:
        if row["Header"] in ("User-Agent", "Content-Type"):
            assert headers[row["Header"].lower()] == row["Value"]
    assert verify(secret, headers["x-service-signature"], received.body, now)
    kind = _DATA[body["event"]]
    if kind == "message":
        assert list(body["data"]) == ["message"]
    else:
        data = check_resource(kind, body["data"])
        assert kind != "payment" or data["payment_url"] is None
    return Notification(body["event"], body["id"], body["livemode"], body["data"])


async def listen(account: MerchantClient, server: ScriptedServer) -> str:
    """Configures the account's endpoint to be this peer; gives its secret."""
    answer = await account.put("/webhooks/endpoint", {"url": server.url()})
    secret: str = answer.data["secret"]
    return secret
