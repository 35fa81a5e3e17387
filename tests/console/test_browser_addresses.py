"""Addresses that are none of ours: a browser gets a page, a client of the API the contract's error."""

from tests.console.conftest import ConsoleFixture

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


async def test_a_browser_is_led_to_the_console_or_told_that_there_is_no_page(sqlite_console: ConsoleFixture) -> None:
    service = sqlite_console.service
    home = await service.client.get(f"{service.base_url}/", headers=BROWSER, allow_redirects=False)
    assert (home.status, home.headers["Location"]) == (303, "/console")
    page = await service.client.get(f"{service.base_url}/wp-login", headers=BROWSER)
    assert (page.status, page.content_type, "Page introuvable" in await page.text()) == (404, "text/html", True)


async def test_a_client_of_the_api_is_told_as_the_contract_says(sqlite_console: ConsoleFixture) -> None:
    service = sqlite_console.service
    for path, headers in (("/", {}), ("/wp-login", {}), ("/v1/nowhere", BROWSER)):
        answer = await service.client.get(f"{service.base_url}{path}", headers=headers, allow_redirects=False)
        assert (answer.status, (await answer.json())["error"]["code"]) == (404, "not_found"), path
