"""The pages of the console's tables as addresses, and one person who opens them all, over TLS."""

import itertools
import re
import ssl
from collections.abc import AsyncIterator, Container, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import aiohttp

from guichet import bootstrap
from guichet.application import application
from guichet.console.sections import MerchantPage, StaffPage
from guichet.server.connection_limits import ConnectionLimits
from guichet.server.http_server import Tls
from guichet.settings import Settings
from tests.console.conftest import ConsoleBrowser, ConsoleFixture
from tests.console.page_rules import faults_of
from tests.console.pages import Page
from tests.console.samples import Ids
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.clock import ManualClock
from tests.server.port_fixture import open_port
from tests.service_fixture import ServiceFixture

PUBLIC_URL: Final = "https://pay.example"
#: Ids that nobody has: neither a parser nor a database may fall over them.
_NOBODYS: Final = (
    "0",
    "987654321",
    str(2**63),
    "9" * 5000,
    "00000000-0000-4000-8000-000000000000",
    "%00",
    "%C3%A9'%3C",
)
_TOKEN: Final = re.compile(rb'(?<=name="csrf" value=")[^"]*')
_PARAMETER: Final = re.compile(r"\{(\w+)(?::\w+)?\}")


@asynccontextmanager
async def console_over_tls(settings: Settings, folder: Path) -> AsyncIterator[ConsoleFixture]:
    """The whole application behind our own server's own TLS."""
    authority = CertificateAuthority.create(folder)
    file = folder / "server.pem"
    authority.ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(file))
    trust = ssl.create_default_context()
    authority.ca.configure_trust(trust)
    clock = ManualClock()
    async with bootstrap.service(replace(settings, public_url=PUBLIC_URL), clock) as opened:
        limits = ConnectionLimits(total=50, per_address=50)
        async with (
            open_port(limits, application(opened, None), Tls(file, None), trust) as port,
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as client,
        ):
            address = f"https://127.0.0.1:{port.number}"
            yield ConsoleFixture(ServiceFixture.of(opened, clock, address, client))


def is_static(path: str) -> bool:
    return _PARAMETER.search(path) is None


def filled(path: str, ids: Ids) -> Iterator[str]:
    """The addresses that `path` stands for, with every combination of ids; none if a parameter has none."""
    names = _PARAMETER.findall(path)
    for values in itertools.product(*(ids.get(name, ()) for name in names)):
        yield _with(path, dict(zip(names, values, strict=True)))


def nobodys(path: str) -> Iterator[str]:
    """The addresses of what does not exist."""
    for text in _NOBODYS:
        yield _with(path, dict.fromkeys(_PARAMETER.findall(path), text))


def _with(path: str, values: Mapping[str, str]) -> str:
    return _PARAMETER.sub(lambda found: values[found[1]], path)


@dataclass
class Walker:
    """One person at a browser. `hidden`: words that no answer may contain. `faults`: what was wrong so far."""

    who: str
    browser: ConsoleBrowser
    hidden: tuple[str, ...] = ()
    faults: list[str] = field(default_factory=list)
    csrf: str = ""
    _known: dict[bytes, list[str]] = field(default_factory=dict)

    @classmethod
    async def begin(cls, who: str, browser: ConsoleBrowser, *hidden: str) -> "Walker":
        page = await browser.get("/console/security")
        return cls(who, browser, hidden, csrf=page.forms()[0].fields["csrf"])

    async def get(self, path: str, allowed: Container[int]) -> int:
        return self._check("GET", await self.browser.ask("GET", path), allowed)

    async def post(self, path: str, allowed: Container[int], **fields: str) -> int:
        return self._check("POST", await self.browser.ask("POST", path, {"csrf": self.csrf, **fields}), allowed)

    async def both(
        self,
        page: MerchantPage | StaffPage,
        path: str,
        allowed: Container[int],
        to_forms: Container[int] | None = None,
    ) -> None:
        """Opens the page and sends it a form, where it takes either. `to_forms`: what may be answered to the form, if
        not the same."""
        if page.show is not None:
            await self.get(path, allowed)
        if page.change is not None:
            await self.post(path, allowed if to_forms is None else to_forms)

    def _check(self, method: str, page: Page, allowed: Container[int]) -> int:
        # Refusals are alike but for the token of the form that signs out.
        known = _TOKEN.sub(b"", page.content)
        if known not in self._known:
            self._known[known] = faults_of(page, PUBLIC_URL)
        faults = list(self._known[known])
        if page.status not in allowed:
            faults.append(f"answered {page.status} {page.headers.get('Location', '')}")
        faults += [f"shows {word}" for word in self.hidden if word in page.text]
        self.faults += [f"{self.who}: {method} {page.path[:80]} {fault}" for fault in faults]
        return page.status
