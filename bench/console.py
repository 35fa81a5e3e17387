"""People who are signed in to the console, and their requests."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import quote_plus

from sqlalchemy import select

from bench import seed
from bench.loads import get, request
from bench.servers import HOST, Merchant, Target
from guichet.accounts import sessions, users
from guichet.bootstrap import service
from guichet.clock import Instant
from guichet.db.engine import require
from guichet.db.tables import payments
from guichet.domain.audit_log import Actor
from guichet.domain.roles import StaffRole
from guichet.exports.requests import ExportRequest, request_export
from guichet.settings import Settings

#: Callers of a page at a time: it takes ten times as long as a request of the API.
PAGE_CONNECTIONS: Final = 4
OWNER: Final = "owner@example.com"
_CSRF: Final = re.compile(r'name="csrf" value="([^"]+)"')


@dataclass(frozen=True)
class People:
    """The cookies of an owner of the merchant and of somebody of the staff who may do everything; each has just given a
    second factor."""

    merchant: Merchant
    owner: str
    staff: str

    def page(self, path: str = "") -> bytes:
        """A page about the merchant, as a browser asks for it."""
        return _page(f"/console/{self.merchant.id}/test{path}", self.owner)

    def staff_page(self, path: str = "") -> bytes:
        return _page(f"/admin{path}", self.staff)

    async def staff_search(self, target: Target, wanted: str) -> bytes:
        """The search for payments of all merchants: a form, with the token that its page gave."""
        shown = (await get(target.port, self.staff_page("/payments"))).decode()
        found = _CSRF.search(shown)
        assert found is not None
        form = f"csrf={quote_plus(found[1])}&q={quote_plus(wanted)}".encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
        return request("POST", "/admin/payments", "", form, {**headers, "Cookie": self.staff})


def _page(path: str, cookie: str) -> bytes:
    return request("GET", path, "", headers={"Cookie": cookie, "Accept-Encoding": "gzip", "Accept-Language": "fr"})


async def sign_in(settings: Settings, merchant: Merchant) -> People:
    """Makes both people, once for a database."""
    return People(
        merchant,
        owner=await _session(settings, merchant, OWNER, None),
        staff=await _session(settings, merchant, "staff@example.com", "admin"),
    )


async def _session(settings: Settings, merchant: Merchant, email: str, staff_role: StaffRole | None) -> str:
    async with service(settings) as opened:
        db, now = opened.ctx.db, opened.ctx.clock.now()
        async with db.transaction() as tx:
            user = require(await users.create(tx, email, email.partition("@")[0], "fr", staff_role, now))
            await users.set_password(tx, user.id, "", now)
            if staff_role is None:
                await users.join(tx, user.id, merchant.id, "owner", now)
            secret, _ = await sessions.begin(tx, user.id, now, address=HOST, agent="bench", factor_at=now)
    return f"guichet-session={secret}"


async def references(settings: Settings, ids: list[int]) -> list[str]:
    """The references of some payments."""
    async with service(settings) as opened:
        rows = [require(await opened.ctx.db.one(select(payments.c.reference).where(payments.c.id == n))) for n in ids]
    return [str(row[0]) for row in rows]


def searches(count: int, payment_references: list[str]) -> dict[str, list[str]]:
    """What people type into the search of `count` payments, by its name."""
    some = range(1, count, max(1, count // 97))
    rare = [seed.customer(number, count) for number in some if number % 10]
    return {
        "reference": payment_references,
        "external_id": [seed.external_id(number) for number in some],
        "number": [f"{number:010d}" for number in some],
        "telephone, 20 payments": [phone for phone, _, _ in rare],
        "telephone, a tenth of all": [seed.FREQUENT[0]],
        "name, 20 payments": [f"{first} {last}" for _, first, last in rare],
        "name, a tenth of all": ["Awa Diallo"],
        "nothing": ["Personne de ce nom"],
    }


def days_ago(days: int) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).date().isoformat()


async def direct_export(settings: Settings, merchant: Merchant, since: Instant, until: Instant) -> int:
    """Its number: a CSV of payments that is written while the owner downloads it. At most MOST_DIRECT_ROWS rows."""
    async with service(settings) as opened:
        owner = require(await users.by_email(opened.ctx.db, OWNER))
        wanted = ExportRequest(
            merchant_id=merchant.id,
            env="test",
            user_id=owner.id,
            kind="payments",
            format="csv",
            currency=None,
            language="fr",
            time_zone="Africa/Porto-Novo",
            since=since,
            until=until,
        )
        export = await request_export(opened.ctx, wanted, Actor("bench", "bench"))
    assert export.status == "direct"
    return export.id
