"""Clients that pay all along on kept connections, as a proxy does: where nobody listens they go to the next server."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import aiohttp

from tests.processes.fleet import Merchant, ServiceProcess

_CLIENTS: Final = 6


@dataclass
class KeptClients:
    """`sent`: tries of each payment; `cut`: how requests were lost that a server had taken."""

    merchant: Merchant
    servers: list[ServiceProcess]
    sent: Counter[str] = field(default_factory=Counter)
    cut: list[str] = field(default_factory=list)
    is_over: bool = False

    async def pay(self, number: int) -> None:
        order = 0
        while not self.is_over:
            external_id = f"kept-{number}-{order}"
            server = self.servers[(number + order + self.sent[external_id]) % len(self.servers)]
            self.sent[external_id] += 1
            try:
                status, body = await self.merchant.pay(server, external_id)
            except aiohttp.ClientConnectorError:
                continue  # Nobody listens there now: the next server.
            except aiohttp.ClientError as error:
                self.cut.append(repr(error))
                continue
            assert status == 201, body
            assert body["data"]["external_id"] == external_id
            order += 1
            await asyncio.sleep(0.1)  # Leaves the machine to the server that starts.

    async def nothing_was_lost(self) -> None:
        """Every payment that was sent exists once, also where a connection was cut."""
        tries = sum(self.sent.values()) - len(self.sent)
        print(f"\n{len(self.sent)} payments, {tries} tries elsewhere, cut: {self.cut}")  # noqa: T201
        assert len(self.sent) > 30
        _, listed = await self.merchant.call(self.servers[0], "GET", "/payments?per_page=1")
        assert listed["meta"]["total"] == len(self.sent)


@asynccontextmanager
async def paying_all_along(merchant: Merchant, servers: list[ServiceProcess]) -> AsyncIterator[KeptClients]:
    """`servers` may be replaced meanwhile. At the end everything that was sent is looked for."""
    clients = KeptClients(merchant, servers)
    async with asyncio.TaskGroup() as tasks:
        for number in range(_CLIENTS):
            tasks.create_task(clients.pay(number))
        try:
            yield clients
        finally:
            clients.is_over = True
    await clients.nothing_was_lost()
