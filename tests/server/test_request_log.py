"""The line that the log has for each request."""

import aiohttp

from guichet.settings import Settings
from tests.processes.fleet import Merchant, fleet_of, new_merchant


async def test_the_line_names_the_merchant_of_the_key(sqlite_settings: Settings) -> None:
    key = await new_merchant(sqlite_settings)
    with fleet_of(sqlite_settings) as fleet:
        server = fleet.server()
        fleet.ready(server)
        async with aiohttp.ClientSession() as client:
            assert (await Merchant(client, key).pay(server, "order-1"))[0] == 201
            assert (await Merchant(client, key).call(server, "GET", "/payments/nowhere"))[0] == 404
            assert (await Merchant(client, "sk_test_" + "x" * 32).call(server, "GET", "/balance"))[0] == 401
            async with client.get(f"http://127.0.0.1:{server.port}/awa@example.com/22997001234") as unknown:
                assert unknown.status == 404
        server.stop()
    [paid, missing, refused] = [line for line in server.log.splitlines() if " /v1/" in line]
    assert "POST /v1/payments → 201" in paid
    assert "GET /v1/payments/{reference} → 404" in missing
    for line in (paid, missing):
        assert "merchant=1 env=test" in line
    assert "→ 401" in refused
    assert "merchant=" not in refused
    assert "GET /[e-mail]/* → 404" in server.log
    assert "22997001234" not in server.log
