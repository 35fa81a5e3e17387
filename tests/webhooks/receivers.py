"""Merchants' servers that receive webhooks over real HTTPS, and what a merchant reads and checks."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.fakes.certificates import CertificateAuthority
from tests.fakes.http_server import ReceivedRequest, Script, ScriptedServer, answers
from tests.service_fixture import MerchantClient, ServiceFixture

DELAYS = (10, 60, 300, 1800)


def status(code: int, *headers: str) -> Script:
    lines = [f"HTTP/1.1 {code} Whatever", *headers]
    if code != 204:
        lines.append("Content-Length: 0")
    return answers("\r\n".join([*lines, "", ""]).encode())


def in_turn(*scripts: Script) -> Script:
    """Each request gets the next script; the last one is repeated."""
    waiting = list(scripts)

    async def script(writer: asyncio.StreamWriter, request: ReceivedRequest) -> None:
        await (waiting.pop(0) if len(waiting) > 1 else waiting[0])(writer, request)

    return script


def by_path(writer: asyncio.StreamWriter, request: ReceivedRequest) -> Any:
    """Answers the status that the path names."""
    return status(int(request.line.split(" ")[1].rpartition("/")[2]))(writer, request)


@asynccontextmanager
async def receiver(authority: CertificateAuthority, script: Script | None = None) -> AsyncIterator[ScriptedServer]:
    made = (
        ScriptedServer(tls=authority.server("localhost"))
        if script is None
        else ScriptedServer(script, authority.server("localhost"))
    )
    async with made as server:
        yield server


async def merchant_with_endpoint(service: ServiceFixture, server: ScriptedServer) -> tuple[MerchantClient, str]:
    """A merchant whose endpoint is `server`, and its secret."""
    merchant = await service.merchant()
    configured = (await merchant.put("/webhooks/endpoint", {"url": server.url()})).data
    return merchant, configured["secret"]


async def delivery_log(merchant: MerchantClient) -> list[Any]:
    """The delivery log, oldest first."""
    found = (await merchant.get("/webhooks/deliveries?per_page=100")).data
    return list(reversed(found))


def is_genuine(request: ReceivedRequest, secret: str, now: int) -> bool:
    """Verifies as docs/contract.md tells merchants to, independently of our signing code; `now` in Unix seconds."""
    parts = dict(part.split("=", 1) for part in request.headers["x-service-signature"].split(","))
    expected = hmac.new(secret.encode("utf-8"), parts["t"].encode() + b"." + request.body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, parts["v1"]) and abs(now - int(parts["t"])) <= 300


def event(request: ReceivedRequest) -> str:
    return request.headers["x-service-event"]
