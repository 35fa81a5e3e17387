"""More than 200 people sign in at the same moment: two hashes at once, the others wait or are told to come back."""

import asyncio
import threading
from collections import Counter
from dataclasses import replace
from ipaddress import ip_network

import aiohttp
import pytest

from guichet.accounts import passwords
from guichet.accounts.passwords import AT_ONCE, MOST_WAITING
from guichet.settings import Settings
from tests.console.conftest import PASSWORD, ConsoleFixture
from tests.patience import PATIENCE
from tests.service_fixture import open_service

AWA = "awa@example.com"
TOO_MANY = 38


async def test_two_hundred_sign_ins_at_once(sqlite_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each comes from an address of its own; the hashes stand still until everybody is there. Figures with real ones:
    docs/security.md."""
    running, most, go_on, lock = 0, 0, threading.Event(), threading.Lock()

    def held(stored: str | None, password: str) -> bool:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        assert go_on.wait(timeout=PATIENCE)
        with lock:
            running -= 1
        return True

    monkeypatch.setattr(passwords, "_verify", held)
    settings = replace(sqlite_settings, trusted_proxies=(ip_network("127.0.0.1"),))
    async with (
        open_service(settings) as service,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client,
    ):
        console = ConsoleFixture(service)
        await console.joined(AWA, await console.merchant(), "reader")

        async def sign_in(number: int) -> int:
            fields = {"email": AWA if number == 0 else f"nobody{number}@example.com", "password": PASSWORD}
            headers = {"Sec-Fetch-Site": "same-origin", "X-Forwarded-For": f"203.0.{number // 250}.{number % 250}"}
            address = f"{service.base_url}/console/sign-in"
            async with client.post(address, data=fields, headers=headers, allow_redirects=False) as answer:
                return answer.status

        try:
            flood = [asyncio.create_task(sign_in(number)) for number in range(AT_ONCE + MOST_WAITING + TOO_MANY)]
            async with asyncio.timeout(PATIENCE):
                while sum(task.done() for task in flood) < TOO_MANY:
                    await asyncio.sleep(0.02)
                assert (await console.browser().get("/console/sign-in")).status == 200, "other pages do not wait"
                assert {task.result() for task in flood if task.done()} == {503}
                go_on.set()
                statuses = Counter(await asyncio.gather(*flood))
        finally:
            go_on.set()
        assert statuses[503] == TOO_MANY
        assert statuses[422] + statuses[303] == AT_ONCE + MOST_WAITING
        assert most == AT_ONCE
