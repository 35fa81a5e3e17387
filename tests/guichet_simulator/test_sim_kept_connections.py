"""Callbacks share a connection, and lose nothing when the client closes it."""

import asyncio

import aiohttp

from guichet_simulator.background import send_request
from guichet_simulator.models import CallbackRequest
from tests.fakes.http_server import OK, ReceivedRequest, ScriptedServer


async def test_callbacks_share_a_connection() -> None:
    async with ScriptedServer() as server, aiohttp.ClientSession() as session:
        for _ in range(3):
            assert await send_request(session, CallbackRequest(server.url(), b"{}")) == (200, None)
        assert (len(server.received), server.connections) == (3, 1)


async def test_a_callback_on_a_connection_that_the_client_closes_is_sent_by_a_new_one() -> None:
    answered: set[asyncio.StreamWriter] = set()

    async def answers_each_connection_once(writer: asyncio.StreamWriter, _: ReceivedRequest) -> None:
        if writer in answered:
            writer.close()
        else:
            answered.add(writer)
            writer.write(OK)
            await writer.drain()

    async with ScriptedServer(answers_each_connection_once) as server, aiohttp.ClientSession() as session:
        for _ in range(2):
            assert await send_request(session, CallbackRequest(server.url(), b"{}")) == (200, None)
        assert (len(server.received), server.connections) == (3, 2)


async def test_a_client_that_is_away_is_asked_once() -> None:
    async with ScriptedServer(deaf=True) as server, aiohttp.ClientSession() as session:
        address = server.url()
        assert (await send_request(session, CallbackRequest(address, b"{}")))[0] is None
    async with aiohttp.ClientSession() as session:
        status, error = await send_request(session, CallbackRequest(address, b"{}"))
    assert status is None
    assert error is not None
    assert error.startswith("ClientConnectorError")
