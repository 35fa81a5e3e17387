"""A merchant whose hosted pages are really served: the real application, and a provider that the test controls."""

import contextlib
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from guichet import bootstrap
from guichet.application import application
from guichet.back_office.merchants import create_merchant
from guichet.clock import Clock
from guichet.context import AppContext
from guichet.domain.catalogue import Catalogue
from guichet.domain.ids import MerchantId
from guichet.domain.money import Currency
from guichet.merchants.catalogue_file import load_catalogue
from guichet.settings import Settings
from tests.fakes.clock import ManualClock
from tests.fakes.manual_provider import ManualProvider
from tests.service_fixture import running
from tests.tags import tags

CATALOGUE: Catalogue = load_catalogue(None)


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str
    #: Bytes of the body as it travelled.
    wire_size: int

    def forms(self) -> list[dict[str, str]]:
        """The fields of each form with their values; a button's own value under its name."""
        found: list[dict[str, str]] = []
        for tag, values in tags(self.text, "form", "input"):
            if tag == "form":
                found.append({})
            else:
                found[-1][values["name"]] = values.get("value", "")
        return found

    def form(self, operator: str) -> dict[str, str]:
        return next(form for form in self.forms() if form.get("operator") == operator)


@dataclass
class CheckoutFixture:
    """One active merchant; `live` and `test` are its keys."""

    url: str
    service: bootstrap.Service
    http: aiohttp.ClientSession
    clock: Clock
    operator: ManualProvider
    merchant_id: MerchantId
    live: str
    test: str

    @property
    def ctx(self) -> AppContext:
        return self.service.ctx

    def pass_time(self, seconds: float) -> None:
        assert isinstance(self.clock, ManualClock)
        self.clock.advance(seconds)

    async def work(self) -> None:
        """Lets the worker do everything that is due."""
        await self.service.worker().run_until_idle()

    async def api(self, method: str, path: str, key: str = "", **options: Any) -> Any:
        headers = {"Authorization": f"Bearer {key or self.live}"}
        async with self.http.request(method, f"{self.url}/v1{path}", headers=headers, **options) as answer:
            body = await answer.json()
        assert body["success"], body
        return body["data"]

    async def link(self, amount: float = 5000, description: str = "Commande 42", **more: Any) -> str:
        """A new link's path on this server."""
        created = await self.api("POST", "/payment-links", json={"amount": amount, "description": description, **more})
        return urlsplit(str(created["url"])).path

    async def card(self, **more: Any) -> str:
        """A new test card payment's page."""
        customer = {"firstname": "Awa", "lastname": "Diop", "email": "awa@example.com"}
        body = {"amount": 5000, "operator": "VISA", "customer": customer, **more}
        created = await self.api("POST", "/payments", self.test, json=body)
        return urlsplit(str(created["payment_url"])).path

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.send("GET", path, headers=_dashed(headers))

    async def post(self, path: str, form: Mapping[str, str], **headers: str) -> Answer:
        return await self.send("POST", path, data=dict(form), headers=_dashed(headers))

    async def send(self, method: str, path: str, **options: Any) -> Answer:
        async with self.http.request(method, self.url + path, allow_redirects=False, **options) as answer:
            return Answer(
                answer.status, answer.headers, await answer.text(), int(answer.headers.get("Content-Length", "0"))
            )

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
async def open_checkout(
    settings: Settings, clock: Clock | None = None, name: str = "Boutique Kora", currency: Currency = "XOF"
) -> AsyncIterator[CheckoutFixture]:
    """The schema must be there already. Without a `clock`, one that the test advances."""
    sock, url = loopback()
    operator = ManualProvider()
    routes = {mode.operator: ["manual"] for mode in CATALOGUE.modes}
    clock = clock or ManualClock()
    async with bootstrap.service(
        replace(settings, public_url=url), clock, accounts={"manual": operator}, routes=routes
    ) as service:
        merchant, keys = await create_merchant(service.ctx, name, currency=currency)
        app = application(service, None)
        async with running(app, sock), aiohttp.ClientSession() as http:
            yield CheckoutFixture(url, service, http, clock, operator, merchant.id, keys["live"], keys["test"])
