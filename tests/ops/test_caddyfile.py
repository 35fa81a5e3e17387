"""docs/operations/Caddyfile, with the real Caddy between a client and two servers that are ready or not."""

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from tests.cli.conftest import ROOT
from tests.fakes.http_server import ReceivedRequest, ScriptedServer
from tests.patience import PATIENCE
from tests.ports import free_port

FILE = ROOT / "docs" / "operations" / "Caddyfile"


def _caddy() -> str:
    found = shutil.which("caddy", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin")
    if found is None:
        pytest.skip("LOUD: caddy is not installed, docs/operations/Caddyfile is not checked")
    return found


@dataclass
class Server:
    """What Caddy sees of a Guichet server: it is alive, and ready or not. It answers with its name."""

    name: str
    ready: bool = True
    #: It closes the connection when it has read a write.
    hangs_up: bool = False
    writes: list[bytes] = field(default_factory=list)

    async def __call__(self, writer: asyncio.StreamWriter, request: ReceivedRequest) -> None:
        method, path, _ = request.line.split()
        if method == "POST":
            self.writes.append(request.body)
            if self.hangs_up:
                writer.close()
                return
        status = "503 Service Unavailable" if path == "/readyz" and not self.ready else "200 OK"
        body = "" if method == "HEAD" else self.name
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        await writer.drain()


@dataclass
class Proxied:
    a: Server
    b: Server
    client: aiohttp.ClientSession
    url: str

    async def answer(self, method: str, path: str = "/v1/payments", body: str | None = None) -> tuple[int, str]:
        async with self.client.request(method, self.url + path, data=body) as response:
            if response.status == 200:
                assert response.headers["Strict-Transport-Security"]
            return response.status, await response.text()

    async def answers(self, method: str) -> set[tuple[int, str]]:
        return {await self.answer(method) for _ in range(6)}

    async def soon(self, method: str, expected: set[tuple[int, str]]) -> None:
        """Once Caddy has noticed a change."""
        async with asyncio.timeout(PATIENCE):
            while await self.answers(method) != expected:
                await asyncio.sleep(0.1)

    def forget_writes(self) -> None:
        self.a.writes.clear()
        self.b.writes.clear()

    async def waiting_write(self) -> asyncio.Task[tuple[int, str]]:
        """A POST that Caddy keeps, once it has noticed that no server is ready. Its body is `a payment`."""
        async with asyncio.timeout(PATIENCE):
            while True:
                write = asyncio.create_task(self.answer("POST", body="a payment"))
                if not (await asyncio.wait([write], timeout=1))[0]:
                    return write


@contextmanager
def running(caddy: str, folder: Path, change: Callable[[str], str]) -> Iterator[None]:
    config = folder / "Caddyfile"
    config.write_text(change(FILE.read_text(encoding="utf-8")), encoding="utf-8")
    environ = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    command = [caddy, "run", "--config", str(config), "--adapter", "caddyfile"]
    with (folder / "log").open("w") as log, subprocess.Popen(command, env=environ, stdout=log, stderr=log) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE)


@pytest.fixture
async def proxied(tmp_path: Path) -> AsyncIterator[Proxied]:
    caddy, port = _caddy(), free_port()
    a, b = Server("a"), Server("b")
    async with ScriptedServer(a, host="127.0.0.1") as first, ScriptedServer(b, host="127.0.0.1") as second:

        def here(text: str) -> str:
            """Without TLS and administration, on ports of the test."""
            lines = [line for line in text.splitlines() if not line.strip().startswith("tls /etc/ssl")]
            text = "\n".join(lines) + "\n"
            for written, meant in (
                ("admin localhost:2019", "admin off"),
                ("pay.example.com {", f"http://127.0.0.1:{port} {{\n\tbind 127.0.0.1"),
                ("127.0.0.1:8001 127.0.0.1:8002", f"127.0.0.1:{first.port} 127.0.0.1:{second.port}"),
            ):
                assert text.count(written) == 1, written
                text = text.replace(written, meant)
            return text

        with running(caddy, tmp_path, here):
            async with aiohttp.ClientSession() as client:
                opened = Proxied(a, b, client, f"http://127.0.0.1:{port}")
                async with asyncio.timeout(PATIENCE):
                    while True:
                        try:
                            await opened.answer("GET")
                            break
                        except aiohttp.ClientConnectionError:
                            await asyncio.sleep(0.1)
                yield opened


async def test_reads_survive_while_no_server_is_ready(proxied: Proxied) -> None:
    """As when the standby is away: no commit ends, and a server that is alive can still read."""
    both = {(200, "a"), (200, "b")}
    for method in ("GET", "POST"):
        await proxied.soon(method, both)
    proxied.a.ready = False
    for method in ("GET", "POST"):
        await proxied.soon(method, {(200, "b")})
    proxied.b.ready = False
    await proxied.soon("GET", both)
    write = await proxied.waiting_write()
    await proxied.soon("GET", both)
    assert await proxied.answer("HEAD") == (200, "")
    assert await write == (503, "")
    proxied.a.ready = True
    for method in ("POST", "GET"):
        await proxied.soon(method, {(200, "a")})


async def test_a_write_waits_until_a_server_is_ready(proxied: Proxied) -> None:
    """As in a rolling restart, when one server stops before Caddy has noticed that the other one is ready again."""
    proxied.a.ready = proxied.b.ready = False
    write = await proxied.waiting_write()
    proxied.forget_writes()
    proxied.b.ready = True
    assert await write == (200, "b")
    assert (proxied.a.writes, proxied.b.writes) == ([], [b"a payment"])


async def test_a_write_that_a_server_may_have_received_is_not_sent_again(proxied: Proxied) -> None:
    await proxied.soon("POST", {(200, "a"), (200, "b")})
    proxied.a.hangs_up = proxied.b.hangs_up = True
    for body in ("a payment", None):  # Caddy could send a write without a body again.
        proxied.forget_writes()
        assert await proxied.answer("POST", body=body) == (502, "")
        assert proxied.a.writes + proxied.b.writes == [(body or "").encode()]


def test_the_servers_take_turns_without_a_shared_counter() -> None:
    """While a server was away, `round_robin` of Caddy 2.6.2 refused requests that came at the same time: upgrade.md."""
    assert set(re.findall(r"lb_policy (\w+)", FILE.read_text(encoding="utf-8"))) == {"random"}


@pytest.mark.parametrize("ready", [True, False])
async def test_what_watches_is_not_for_the_public(proxied: Proxied, ready: bool) -> None:
    proxied.a.ready = proxied.b.ready = ready
    for path in ("/readyz", "/metrics"):
        assert (await proxied.answer("GET", path))[0] == 404
    assert (await proxied.answer("GET", "/healthz"))[0] == 200
