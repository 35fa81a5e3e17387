"""What a family of operators' APIs is to the simulator: routes, faults in its own words, notifications."""

import base64
import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from guichet.domain import money
from guichet_simulator import phone
from guichet_simulator.context import Desk, Notification
from guichet_simulator.scenarios import Answer, Scenario
from guichet_simulator.sockets import Dropped, Halved
from guichet_simulator.store import FAILED, QueuedCallback, State, Transaction

#: What a 200 nobody can read looks like: a proxy's page where JSON was promised.
GARBAGE: Final = '<html><head><title>200 OK</title></head><body>\ufffd{"status":'

#: Answers that make sense for a question; the business ones do not.
_FOR_QUESTIONS: Final = frozenset(
    {
        Answer.BROKEN,
        Answer.GARBAGE,
        Answer.DROPPED,
        Answer.HALVED,
        Answer.SLOW,
        Answer.UNAUTHORIZED,
        Answer.RATE_LIMITED,
        Answer.UNAVAILABLE,
    }
)


@dataclass(frozen=True, slots=True)
class Fault:
    """An answer that is not the hoped-for one. No body means an empty one."""

    status: int
    body: Mapping[str, object] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def answer(self, echo: Mapping[str, object] | None = None) -> Response:
        if self.body is None:
            return Response(status_code=self.status, headers=dict(self.headers))
        return json_answer({**(echo or {}), **self.body}, self.status, dict(self.headers))


class Family(ABC):
    """One API family. Class attributes are what the desk needs to know (`desk.Voice`)."""

    name: str
    #: How the simulated phone calls it.
    title: ClassVar[str]
    #: Seconds a customer has.
    lifetime: ClassVar[float] = 600
    retries: tuple[float, ...] = (5, 30, 120, 600)
    second_chance: float | None = None
    ends_as: State = FAILED
    #: How each fault is worded; a (call, answer) pair is more precise than the answer alone. BROKEN is required.
    faults: ClassVar[Mapping[Answer | tuple[str, Answer], "Fault"]]

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    @abstractmethod
    def routes(self) -> list[BaseRoute]:
        """Paths as the operator has them, below `/simulator/{family}`."""

    def fault(self, answer: Answer, call: str = "debit", echo: Mapping[str, object] | None = None) -> Response:
        """The family's words for a fault or a refusal of a call; `echo` is added to a JSON body."""
        meant = Answer.REFUSED if answer is Answer.BUSINESS_500 and answer not in self.faults else answer
        return self.faults.get((call, meant), self.faults.get(meant, self.faults[Answer.BROKEN])).answer(echo)

    def notification(self, tx: Transaction, queued: QueuedCallback) -> Notification | None:
        return None

    @property
    def address(self) -> str:
        return f"{self.desk.public_url}/{self.name}"

    async def respond(
        self,
        call: str,
        scenario: Scenario | None,
        usual: Callable[[], Response],
        echo: Mapping[str, object] | None = None,
    ) -> Response:
        """Answer a call as `scenario` has it. `usual` does the work and words the ordinary answer."""
        if scenario is None or (call in ("status", "token") and scenario.answer not in _FOR_QUESTIONS):
            return usual()
        whole = usual() if scenario.stored else Response(status_code=200)
        if scenario.stored and whole.status_code >= 400:
            return whole
        answer = scenario.answer
        if answer is Answer.SLOW:
            await self.desk.clock.sleep(scenario.delay)
        nothing_special = answer is Answer.DUPLICATE and answer not in self.faults
        if nothing_special or answer in (Answer.NORMAL, Answer.FINAL, Answer.SLOW):
            return whole
        on_the_wire: dict[Answer, Callable[[], Response]] = {
            Answer.DROPPED: Dropped,
            Answer.HALVED: lambda: Halved(whole),
            Answer.GARBAGE: lambda: Response(GARBAGE, media_type="text/html"),
        }
        return on_the_wire.get(answer, lambda: self.fault(answer, call, echo))()

    async def hosted_page(self, request: Request) -> Response:
        """The operator's own page where a customer confirms: `detail.page_url` is its address."""
        self.desk.let_time_pass()
        url = self.address + request.url.path.partition(f"/{self.name}")[2]
        found = self.desk.store.select("family = ? AND json_extract(detail, '$.page_url') = ?", self.name, url)
        return phone.hosted_page(self.desk, found[0]) if found else phone.page(self.desk, "unknown.html", status=404)

    async def question(self, tx: Transaction, usual: Callable[[], Response]) -> Response:
        """Answer a question about a transaction."""
        return await self.respond("status", self.desk.choose_status(tx), usual)


def new_uuid() -> str:
    return str(uuid.uuid4())


def is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


async def json_object(request: Request) -> dict[str, Any] | None:
    """The request's JSON object; None for anything else."""
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def credential(request: Request, scheme: str = "Bearer") -> str | None:
    """What follows the scheme in `Authorization`. A credential that contains "invalid" is refused everywhere."""
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    said = _decoded(value) if scheme == "Basic" else value
    if kind.casefold() != scheme.casefold() or not acceptable(said):
        return None
    return value.strip()


def _decoded(value: str) -> str:
    """The user and password of HTTP Basic; as it is where it is not base64."""
    try:
        return base64.b64decode(value, validate=True).decode()
    except ValueError:
        return value


def acceptable(value: str | None) -> bool:
    """Any credential is good, except none and one that contains "invalid"."""
    return bool(value and value.strip()) and "invalid" not in str(value)


def hundredths(text: object, currency: str) -> int | None:
    """An amount sent as text or integer, in hundredths; None if it is not one, not positive, or too fine."""
    if isinstance(text, bool) or not isinstance(text, str | int):
        return None
    amount = money.parse_decimal(str(text), 2)
    if not amount or amount <= 0 or currency not in money.DECIMALS or not money.has_whole_units(amount, currency):
        return None
    return amount


def units(amount: int | None) -> int | None:
    """Whole main units, for the APIs that speak integers."""
    return None if amount is None else amount // 100


def json_answer(body: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse(body, status_code=status, headers=headers)


def json_bytes(body: object) -> bytes:
    """The body of a notification."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
