"""What browsers keep of the console: its style sheets and scripts, as they are sent."""

import re

from tests.console.conftest import ConsoleFixture

LIMITS = {"css": 6 * 1024, "js": 4 * 1024}


async def test_style_sheets_and_scripts_are_light(sqlite_console: ConsoleFixture) -> None:
    merchant = await sqlite_console.merchant()
    owner = await sqlite_console.joined("awa@example.com", merchant)
    owner.sends["Accept-Encoding"] = "gzip"
    seen = set()
    for page in ("payments", "cash-desk"):
        shown = await owner.get(f"/console/{merchant.id}/test/{page}")
        for path, kind in re.findall(r'(/console/assets/[^"]+\.(css|js))"', shown.text):
            answer = await owner.ask("GET", path)
            assert answer.headers["Content-Encoding"] == "gzip"
            assert int(answer.headers["Content-Length"]) <= LIMITS[kind], path
            seen.add(path.split("/")[-1].split(".")[0] + kind)
    assert seen == {"pagescss", "pagesjs", "deskcss", "deskjs"}
