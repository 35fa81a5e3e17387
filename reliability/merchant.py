"""Merchants of a trial: their keys, and one server that receives the webhooks of all of them.

The server verifies each signature and answers 500, hangs or hangs up at times, by a seed. It keeps what a merchant's
book would hold: every event id, its body, how often it came, and in which order the events of a payment came.
"""

import asyncio
import hashlib
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

import msgspec

from guichet.back_office.merchants import create_merchant
from guichet.bootstrap import service
from guichet.domain.ids import MerchantId
from guichet.settings import Settings
from guichet.webhooks.sender import verify

#: What must have come before the first attempt at an event; retries keep no order (docs/decisions.md, D35).
_AFTER: Final[dict[str, set[str]]] = {
    "refund.succeeded": {"payment.succeeded"},
    "refund.failed": {"payment.succeeded"},
    "payment.refunded": {"payment.succeeded", "refund.succeeded"},
}
Behaviour = Literal["accept", "error", "hang", "drop"]
#: How often (in thousandths) the attempts 1 and 2 at one event meet each behaviour. The third is always accepted: the
#: fourth and fifth attempts, five and thirty minutes later, are left for what the kills of a trial cut off.
_FAULTS: Final[dict[int, dict[Behaviour, int]]] = {
    1: {"error": 40, "hang": 2, "drop": 10},
    2: {"error": 20, "hang": 0, "drop": 5},
}
_HANGS: Final = 11.0  # seconds: one more than a receiver has
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_SIGNATURE: Final = re.compile(rb"\r\nx-service-signature: *([^\r]+)", re.IGNORECASE)
_PATH: Final = re.compile(rb"POST /(\d+) ")
_OK: Final = b"HTTP/1.1 204 No Content\r\n\r\n"
_ERROR: Final = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"


@dataclass(slots=True)
class ReceivedEvent:
    """One webhook, by its id. `payment`: the reference of the payment that it concerns."""

    id: str
    name: str
    payment: str
    status: str
    digest: bytes
    attempts: int = 1
    accepted: bool = False


@dataclass
class Merchant:
    """A merchant, and the book that it keeps of its webhooks. `number` is its path at the receiver."""

    number: int
    id: MerchantId
    key: str
    test_key: str
    secret: str = ""
    events: dict[str, ReceivedEvent] = field(default_factory=dict)
    by_payment: dict[str, list[ReceivedEvent]] = field(default_factory=lambda: defaultdict(list))
    #: What must never happen, in words: wrong signatures, bodies that changed, events out of order.
    faults: list[str] = field(default_factory=list)
    #: Events that came again with another body, which is right only if the payment was anonymised meanwhile.
    changed: list[ReceivedEvent] = field(default_factory=list)


async def create_merchants(settings: Settings, count: int) -> list[Merchant]:
    """New active merchants. The schema must be up to date."""
    made = []
    async with service(settings) as opened:
        for number in range(count):
            merchant, keys = await create_merchant(opened.ctx, f"Merchant {number + 1}")
            made.append(Merchant(number, merchant.id, keys["live"], keys["test"]))
    return made


@dataclass
class WebhookReceiver:
    """The merchants' server. `on_event` is called once for each event, when it is accepted first. `well_behaved`: it
    accepts every attempt."""

    merchants: list[Merchant]
    seed: int
    on_event: Callable[[Merchant, ReceivedEvent, dict[str, Any]], Awaitable[None]] | None = None
    well_behaved: bool = False
    statistics: Counter[str] = field(default_factory=Counter)
    port: int = 0
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def url(self, merchant: Merchant) -> str:
        return f"http://127.0.0.1:{self.port}/{merchant.number}"

    async def start(self, port: int) -> None:
        loop = asyncio.get_running_loop()
        self.port = port
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", port)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def receive(self, head: bytes, body: bytes) -> Behaviour:
        """Notes one attempt, and how the server behaves."""
        path = _PATH.match(head)
        merchant = self.merchants[int(path[1])] if path else None
        signature = _SIGNATURE.search(head)
        if merchant is None or signature is None:
            self.statistics["unreadable"] += 1
            return "error"
        if not verify(merchant.secret, signature[1].decode(), body, int(time.time())):
            merchant.faults.append(f"a wrong signature: {head[:80]!r}")
            return "error"
        envelope = msgspec.json.decode(body)
        event = self._note(merchant, envelope, body)
        behaviour = self._behaviour(event)
        self.statistics[behaviour] += 1
        if behaviour == "accept":
            self._accept(merchant, event, envelope)
        return behaviour

    def _note(self, merchant: Merchant, envelope: dict[str, Any], body: bytes) -> ReceivedEvent:
        digest = hashlib.blake2b(body, digest_size=16).digest()
        if known := merchant.events.get(envelope["id"]):
            known.attempts += 1
            if known.digest != digest:
                merchant.changed.append(known)
            return known
        data = envelope["data"]
        payment = data.get("payment_reference") or data["reference"]
        event = ReceivedEvent(envelope["id"], envelope["event"], payment, data["status"], digest)
        before = merchant.by_payment[payment]
        if not _AFTER.get(event.name, set()) <= {earlier.name for earlier in before}:
            merchant.faults.append(f"{event.name} of {payment} came before its turn")
        merchant.events[event.id] = event
        before.append(event)
        return event

    def _behaviour(self, event: ReceivedEvent) -> Behaviour:
        drawn = random.Random(f"{self.seed}/{event.id}/{event.attempts}").randrange(1000)
        faults = {} if self.well_behaved else _FAULTS.get(event.attempts, {})
        for behaviour, share in faults.items():
            if drawn < share:
                return behaviour
            drawn -= share
        return "accept"

    def _accept(self, merchant: Merchant, event: ReceivedEvent, envelope: dict[str, Any]) -> None:
        if event.accepted:
            self.statistics["repeated"] += 1
            return
        event.accepted = True
        if self.on_event is not None:
            self.in_background(self.on_event(merchant, event, envelope["data"]))

    def in_background(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Connection(asyncio.Protocol):
    def __init__(self, receiver: WebhookReceiver) -> None:
        self._receiver = receiver
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own, no subclass

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while self._take():
            pass

    def _take(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = self._buffer[: end + 2]
        length = _LENGTH.search(head)
        size = end + 4 + (int(length[1]) if length else 0)
        if len(self._buffer) < size:
            return False
        body, self._buffer = self._buffer[end + 4 : size], self._buffer[size:]
        match self._receiver.receive(head, body):
            case "accept":
                self._transport.write(_OK)
            case "error":
                self._transport.write(_ERROR)
            case "drop":
                self._transport.abort()
            case "hang":
                asyncio.get_running_loop().call_later(_HANGS, self._transport.abort)
        return True
