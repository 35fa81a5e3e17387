"""`guichet mcp` through the real protocol: a client of PyPI's mcp starts the command and talks to it over its pipes."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.tables import table
from tests.fakes.scripted_provider import done
from tests.payments.conftest import LivePayments, sqlite_live
from tests.service_fixture import ServiceFixture

if TYPE_CHECKING:  # It takes 1.5 s of processor, in each runner of tests.
    from mcp import ClientSession

__all__ = ["sqlite_live"]

#: Tools with a live key that are not reads.
LIVE = {"quote_fees", "create_link", "close_link", "create_session", "expire_session", "propose_refund"}


@asynccontextmanager
async def connected(service: ServiceFixture, key: str) -> AsyncIterator["ClientSession"]:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    command = [sys.executable, "-m", "guichet", "mcp", "--url", f"{service.base_url}/v1"]
    environment = {**os.environ, "MERCHANT_API_KEY": key}
    server = StdioServerParameters(command=command[0], args=command[1:], env=environment)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


async def call(session: "ClientSession", tool: str, **arguments: Any) -> Any:
    """The answer's `data`, or its `error`."""
    import mcp_types as types

    result = await session.call_tool(tool, arguments)
    assert isinstance(result, types.CallToolResult)
    [content] = result.content
    assert isinstance(content, types.TextContent)
    answer = json.loads(content.text)
    assert result.is_error is not answer["success"]
    return answer["data"] if answer["success"] else answer["error"]


async def test_a_test_key_can_do_everything_and_pays_once(sqlite_service: ServiceFixture) -> None:
    merchant = await sqlite_service.merchant()
    async with connected(sqlite_service, merchant.keys["test"]) as session:
        tools = {each.name: each for each in (await session.list_tools()).tools}
        assert len(tools) == len(table("endpoints"))
        assert tools["list_payments"].annotations
        assert tools["list_payments"].annotations.read_only_hint
        payment = {"amount": 5000, "operator": "mtn", "phone_number": "2290197000000", "external_id": "commande/7"}
        assert "external_id" in (await call(session, "create_payment", **{**payment, "external_id": None}))["message"]
        made = await call(session, "create_payment", **payment)
        assert (await call(session, "create_payment", **payment))["reference"] == made["reference"]
        assert (await call(session, "read_payment", reference="commande/7"))["status"] == "succeeded"
        refund = await call(session, "create_refund", reference="commande/7", reason="Essai")
        assert (refund["status"], refund["reason"]) == ("succeeded", "Essai")
        assert len(await call(session, "list_payments", status="refunded", per_page=1)) == 1
        assert (await call(session, "create_payment", **{**payment, "amount": 0}))["code"] == "invalid_request"
        assert "pay_everybody" in (await call(session, "pay_everybody"))["message"]


async def test_a_live_key_reads_and_makes_links_and_proposes_refunds(sqlite_live: LivePayments) -> None:
    service, merchant = sqlite_live.service, sqlite_live.merchant
    sqlite_live.first.script("status", done)
    made = await merchant.pay(external_id="c/9")
    await service.run_worker(60)
    async with connected(service, merchant.keys["live"]) as session:
        tools = {each.name: each for each in (await session.list_tools()).tools}
        reading = tools.keys() - LIVE
        assert all(name.startswith(("read_", "list_")) for name in reading), reading
        assert "read_endpoint" not in reading, "it answers the secret of the webhooks"
        link = await call(session, "create_link", amount=500, description="Cotisation", external_id="c-1")
        assert (await call(session, "create_link", amount=500, description="Cotisation", external_id="c-1")) == link
        for tool in ("create_payment", "create_refund", "configure_endpoint", "resend_delivery"):
            assert tool in (await call(session, tool, reference=made["reference"], id="x"))["message"]
        assert "reference" in (await call(session, "propose_refund", reference=""))["message"]
        asked = await call(session, "propose_refund", reference="c/9", reason="Perdu & cassé")
        page = f"{service.ctx.settings.public_url}/console/refund/{made['reference']}"
        assert (asked["status"], asked["reason"], asked["url"]) == ("open", "Perdu & cassé", page)
        assert await call(session, "propose_refund", reference="c/9", reason="Encore") == asked
        assert await call(session, "read_refund_proposal", reference="c/9") == asked
        assert await call(session, "list_refunds") == []


@pytest.mark.parametrize("key", ["", "pk_test_1"])
def test_without_a_key_it_does_not_start(key: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "guichet", "mcp"],
        env={**os.environ, "MERCHANT_API_KEY": key},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert "MERCHANT_API_KEY must be a secret key" in run.stderr


@pytest.mark.parametrize("servers", ["mcpServers", "servers"])
def test_the_examples_start_the_command(servers: str) -> None:
    """The configurations of docs/mcp.md are JSON, and name options that the command has."""
    page = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")
    example = page.partition(f"<!-- client: {servers} -->\n```json\n")[2].partition("```")[0]
    server = json.loads(example)[servers]["guichet"]
    assert list(server["env"]) == ["MERCHANT_API_KEY"]
    run = subprocess.run(
        [sys.executable, "-m", server["command"], *server["args"]],
        env={**os.environ, "MERCHANT_API_KEY": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "MERCHANT_API_KEY must be" in run.stderr, run.stderr
