"""A merchant whose hosted pages are really served: the real application on a real port, an operator that obeys the test."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from guichet import bootstrap, settings
from guichet.api.app import Api
from guichet.clock import Clock
from guichet.domain.catalogue import Catalogue
from guichet.edge.context import RequestContext
from guichet.flows.core import Core
from guichet.operators.base import (
    Accepted,
    Callback,
    Charge,
    Hint,
    InitiateAnswer,
    Refused,
    Reversal,
    StatusAnswer,
    Succeeded,
    Unknown,
)
from guichet.pages import app as pages
from guichet.storage.catalogue_file import load_catalogue

CATALOGUE: Catalogue = load_catalogue(None)


@dataclass
class Operator:
    """Stands for every operator. It accepts, and waits for the test to decide; a number ending in 0001 is refused."""

    remote: bool = True
    charges: dict[str, Charge] = field(default_factory=dict)
    decided: dict[str, StatusAnswer] = field(default_factory=dict)
    #: Seconds an answer takes.
    slowness: float = 0

    def first_question(self, charge: Charge) -> None:
        return None

    async def initiate(self, charge: Charge) -> InitiateAnswer:
        await asyncio.sleep(self.slowness)
        self.charges[charge.reference] = charge
        if (charge.phone_number or "").endswith("0001"):
            return Refused("insufficient_funds")
        if charge.phone_number is None or charge.operator.startswith("wave"):
            return Accepted(redirect_url=f"http://operator.test/confirm/{charge.reference}")
        return Accepted()

    async def status(self, charge: Charge) -> StatusAnswer:
        await asyncio.sleep(self.slowness)
        return self.decided.get(charge.reference, Unknown())

    def approve(self, reference: str) -> None:
        charge = self.charges[reference]
        self.decided[reference] = Succeeded(charge.amount, charge.currency)

    def refuse(self, reference: str, reason: str = "rejected_by_payer") -> None:
        self.decided[reference] = Refused(reason)

    @property
    def last(self) -> Charge:
        return list(self.charges.values())[-1]

    async def refund(self, reversal: Reversal) -> InitiateAnswer:
        return Succeeded(reversal.amount, reversal.currency)

    async def refund_status(self, reversal: Reversal) -> StatusAnswer:
        return Succeeded(reversal.amount, reversal.currency)

    def read_callback(self, callback: Callback) -> Hint | None:
        return None


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str
    #: Bytes of the body as they travelled.
    wire_size: int

    def forms(self) -> list[dict[str, str]]:
        """The fields of each form with their values; a button's own value under its name."""
        parser = _Forms()
        parser.feed(self.text)
        return parser.forms

    def form(self, operator: str) -> dict[str, str]:
        return next(form for form in self.forms() if form.get("operator") == operator)


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append({})
        elif tag == "input":
            self.forms[-1][values["name"]] = values.get("value", "")


@dataclass
class Shop:
    """One active merchant; `live` and `test` are its keys."""

    url: str
    core: Core
    http: aiohttp.ClientSession
    operator: Operator
    merchant_id: int
    live: str
    test: str

    async def api(self, method: str, path: str, key: str = "", **options: Any) -> Any:
        headers = {"Authorization": f"Bearer {key or self.live}"}
        async with self.http.request(method, f"{self.url}/v1{path}", headers=headers, **options) as answer:
            body = await answer.json()
        assert body["success"], body
        return body["data"]

    async def link(self, amount: float = 5000, description: str = "Commande 42", **more: Any) -> str:
        """A new link's path on this server."""
        created = await self.api("POST", "/payment-links", json={"amount": amount, "description": description, **more})
        return urlsplit(created["url"]).path

    async def card(self, **more: Any) -> str:
        """A new test card payment's page."""
        customer = {"firstname": "Awa", "lastname": "Diop", "email": "awa@example.com"}
        body = {"amount": 5000, "operator": "VISA", "customer": customer, **more}
        created = await self.api("POST", "/payments", self.test, json=body)
        return urlsplit(created["payment_url"]).path

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.send("GET", path, headers=_dashed(headers))

    async def post(self, path: str, form: Mapping[str, str], **headers: str) -> Answer:
        return await self.send("POST", path, data=dict(form), headers=_dashed(headers))

    async def send(self, method: str, path: str, **options: Any) -> Answer:
        async with self.http.request(method, self.url + path, allow_redirects=False, **options) as answer:
            raw = answer.content.total_raw_bytes if hasattr(answer.content, "total_raw_bytes") else 0
            text = await answer.text()
            return Answer(answer.status, answer.headers, text, int(answer.headers.get("Content-Length", raw)))

    async def pay(self, path: str, operator: str = "mtn", phone: str = "01 97 00 00 45", **more: str) -> Answer:
        """Opens a link's page, fills in its form and sends it."""
        form = (await self.get(path)).form(operator)
        return await self.post(path, form | {"phone_number": phone} | more)

    async def waiting(self, path: str, **more: str) -> str:
        """Pays, and returns the path of the payment's own page."""
        answer = await self.pay(path, **more)
        assert answer.status == 303, answer.text
        return answer.headers["Location"]


def _dashed(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def loopback() -> tuple[socket.socket, str]:
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    return sock, f"http://127.0.0.1:{sock.getsockname()[1]}"


@contextlib.asynccontextmanager
async def open_shop(
    home: Path,
    environ: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    name: str = "Boutique Kora",
    currency: str = "XOF",
) -> AsyncIterator[Shop]:
    """`environ` holds more GUICHET_* variables; limits are off unless it sets them."""
    sock, url = loopback()
    chosen = settings.load(
        {
            "GUICHET_HOME": str(home),
            "GUICHET_PUBLIC_URL": url,
            "GUICHET_RATE_LIMIT": "0",
            "GUICHET_PAGE_RATE_LIMIT": "0",
            "GUICHET_LOG_LEVEL": "error",
            **(environ or {}),
        }
    )
    operator = Operator()
    routes = {mode.operator: ["obedient"] for mode in CATALOGUE.modes}
    if chosen.embedded:
        home.mkdir(parents=True, exist_ok=True)
    await bootstrap.migrate.upgrade(chosen)
    async with bootstrap.service(chosen, clock, {"obedient": operator}, routes) as service:
        merchant, keys = await bootstrap.create_merchant(service.core, name, currency=currency)
        application = RequestContext(Starlette(routes=[Mount("/v1", Api(service.core)), *pages.routes(service.core)]))
        async with _serving(application, sock), aiohttp.ClientSession() as http:
            yield Shop(url, service.core, http, operator, merchant.id, keys["live"], keys["test"])


@contextlib.asynccontextmanager
async def _serving(application: Any, sock: socket.socket) -> AsyncIterator[None]:
    server = uvicorn.Server(uvicorn.Config(application, log_level="warning", access_log=False, lifespan="off"))
    task = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        while not server.started:
            await asyncio.sleep(0.01)
        yield
    finally:
        server.should_exit = True
        await task
