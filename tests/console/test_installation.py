"""What a telephone needs to install the console, and to say that it is offline."""

import json

from tests.console.conftest import ConsoleFixture


async def test_the_manifest_names_icons_that_exist(sqlite_console: ConsoleFixture) -> None:
    stranger = sqlite_console.browser()
    answer = await stranger.get("/console/manifest.webmanifest")
    assert answer.headers["Content-Type"] == "application/manifest+json"
    manifest = json.loads(answer.text)
    assert (manifest["display"], manifest["start_url"], manifest["scope"]) == ("standalone", "/console/", "/console/")
    assert {icon["sizes"] for icon in manifest["icons"]} == {"192x192", "512x512"}
    for icon in manifest["icons"]:
        image = await stranger.get(icon["src"])
        assert (image.status, image.headers["Content-Type"]) == (200, "image/png")
        assert image.content.startswith(b"\x89PNG")
    merchant = await sqlite_console.merchant()
    cashier = await sqlite_console.joined("awa@example.com", merchant, "cashier")
    for path in (f"/console/{merchant.id}/test/cash-desk", f"/console/{merchant.id}/test/links"):
        page = await cashier.get(path)
        assert 'rel="manifest" href="/console/manifest.webmanifest"' in page.text
        assert "manifest-src 'self'" in page.headers["Content-Security-Policy"]


async def test_the_service_worker_is_looked_for_again(sqlite_console: ConsoleFixture) -> None:
    worker = await sqlite_console.browser().get("/console/offline.js")
    assert worker.headers["Content-Type"].startswith("text/javascript")
    assert worker.headers["Cache-Control"] == "no-cache", "a newer one is found"
    assert "Hors connexion" in worker.text
