"""What merchants and customers wrote never turns or hides what a page says beside it (`guichet/printable.py`)."""

import json
from urllib.parse import unquote

from sqlalchemy import insert

from guichet.db.tables import incidents, payments
from guichet.domain.merchants import Caller
from guichet.domain.messages import encode, verbatim
from guichet.links.links import CASH_DESK_PREFIX, cash_desk_link, create_link, requested_link
from guichet.printable import printable_label
from tests.console.conftest import ConsoleFixture
from tests.db.rows import INCIDENT, PAYMENT, REFERENCE

#: Turned around, it says another amount; the second part is what a terminal would obey.
HOSTILE = "\u202e0005\x1b[31m"
SHOWN = "\\u202e0005\\x1b[31m"


async def test_texts_of_links_and_sales_turn_nothing_around(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    merchant, ctx = await console.merchant(), console.service.ctx
    cashier = await console.joined("awa@example.com", merchant, "owner")
    caller = Caller(merchant, "live")
    body = {"amount": 5000, "description": HOSTILE, "external_id": f"a{HOSTILE}", "metadata": {"a": HOSTILE}}
    new_link = requested_link(ctx.clock, ctx.settings, caller, json.dumps(body, ensure_ascii=False).encode())
    link = (await create_link(ctx.db, caller, new_link)).link
    sale = json.dumps({"amount": 1500, "description": HOSTILE, "external_id": f"{CASH_DESK_PREFIX}1"}).encode()
    desk = (await create_link(ctx.db, caller, cash_desk_link(ctx.clock, ctx.settings, caller, sale))).link
    base = f"/console/{merchant.id}/live"
    for path in ("/links", f"/links/{link.id}", f"/links/{link.id}/poster", "/cash-desk", f"/cash-desk/{desk.id}"):
        page = await cashier.get(base + path)
        assert page.status == 200
        assert SHOWN in page.text, path
        # With the messages in which the link is shared.
        assert not {"\u202e", "\x1b"} & set(unquote(page.text)), path
    for path in (f"/pay/{link.path}", f"/pay/{link.path}/qr", f"/pay/{desk.path}"):
        page = await console.browser().get(path)
        assert (page.status, SHOWN in page.text) == (200, True), path
        assert not {"\u202e", "\x1b"} & set(page.text), path
    assert printable_label("Deux\nlignes\u202e") == "Deux\nlignes\\u202e", "customers read no escape for a new line"


async def test_texts_that_the_staff_reads_turn_nothing_around(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    merchant, db = await console.merchant(), console.service.ctx.db
    admin = await console.joined("ada@guichet.example", None, "admin")
    mine = {"merchant_id": merchant.id, "env": "live"}
    wrote = {"description": HOSTILE, "firstname": HOSTILE, "external_id": HOSTILE, "provider_data": HOSTILE}
    paid = {"status": "succeeded", "next_poll_at": None}
    found = await db.write(insert(payments).values(**{**PAYMENT, **mine, **wrote, **paid}).returning(payments.c.id))
    assert found is not None
    now = console.service.clock.now()
    seen = {"detail": encode(verbatim(HOSTILE)), "opened_at": now, "last_seen_at": now}
    await db.write(insert(incidents).values(**{**INCIDENT, **mine, **seen}))
    for path in (f"/admin/payments/{found[0]}", "/admin/incidents", f"/admin/incidents/{REFERENCE}"):
        page = await admin.get(path)
        assert page.status == 200
        assert SHOWN in page.text, path
        assert not {"\u202e", "\x1b"} & set(page.text), path
