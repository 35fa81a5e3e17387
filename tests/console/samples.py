"""A merchant with rows of every kind in both environments, and the ids by which pages name them."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import Executable, bindparam, insert

from guichet.back_office.jobs.statement_comparison import ComparedStatement
from guichet.back_office.merchant_file import add_document, add_note
from guichet.clock import DAY, HOUR, SECOND, Instant
from guichet.db.references import new_reference
from guichet.db.tables import (
    approval_requests,
    events,
    exports,
    incidents,
    payment_links,
    payments,
    reconciliation_runs,
    staff_jobs,
    webhook_deliveries,
)
from guichet.domain.audit_log import Actor
from guichet.domain.merchants import ENVS, Environment, Merchant
from guichet.domain.messages import encode, verbatim
from guichet.domain.money import Hundredths
from guichet.domain.reconciliation import MISSING_HERE, Finding, Line
from tests.console.conftest import ConsoleFixture
from tests.db.rows import APPROVAL, DELIVERY, EVENT, EXPORT, INCIDENT, LINK, PAYMENT, RUN, STAFF_JOB

#: By the name of a parameter of an address.
Ids = dict[str, list[str]]
#: Rows of the long lists: more than a page shows.
_ROWS = 60
_STAFF = Actor("Paul", "root")


@dataclass
class Sample:
    """`word` stands in everything that people wrote, `phone` is every customer's. `ids`: for the merchant's pages, by
    environment; `of_all`: for the back office. Whoever adds a page with a new parameter gives its id here."""

    console: ConsoleFixture
    merchant: Merchant
    word: str
    phone: str
    user_id: int
    ids: dict[Environment, Ids] = field(default_factory=dict)
    of_all: Ids = field(default_factory=dict)

    @property
    def base(self) -> str:
        return f"/console/{self.merchant.id}"

    @property
    def now(self) -> Instant:
        return self.console.service.clock.now()

    async def fill(self) -> None:
        for env in ENVS:
            self.ids[env] = await self._environment({"merchant_id": self.merchant.id, "env": env}, test=env == "test")
        ctx, mine = self.console.service.ctx, {"merchant_id": self.merchant.id}
        await add_note(ctx.db, ctx.clock, self.merchant.id, self.word, _STAFF, 0)
        document = await add_document(ctx, self.merchant.id, f"{self.word}.pdf", b"%PDF-1.7 x", _STAFF)
        about = {**mine, "detail": self.word, "reason": self.word, "subject": self.ids["live"]["reference"][0]}
        wanted = {**about, "user_id": self.user_id, "created_at": self.now, "expires_at": self.now + HOUR}
        request = await self._row(approval_requests, {**APPROVAL, **wanted})
        seen = {
            **about,
            "detail": encode(verbatim(self.word)),
            "reference": about["subject"],
            "opened_at": self.now,
            "last_seen_at": self.now,
        }
        await self._row(incidents, {**INCIDENT, **seen})
        day = self.now // DAY * DAY
        await self._row(reconciliation_runs, {**RUN, "provider_account": self.word, "day": day})
        self.of_all = {
            "job": [await self._comparison()],
            "merchant": [str(self.merchant.id)],
            "document": [str(document.id)],
            "request": [request],
            "payment": self.ids["live"]["payment"],
            "reference": self.ids["live"]["reference"],
            # One of the merchant's, and the first that the test invites: a colleague.
            "user": [str(self.user_id), "1"],
            "account": [self.word],
            "day": [datetime.fromtimestamp(day / SECOND, UTC).date().isoformat()],
        }

    async def _comparison(self) -> str:
        """A job of the staff that compared a statement."""
        line = Line(2, "payment", (self.word, self.phone), Hundredths(500), None, "succeeded", self.now)
        found = [Finding(MISSING_HERE, line, None, verbatim(self.word))]
        compared = ComparedStatement(None, self.now, lines=1, counts={MISSING_HERE: 1}, found=found)
        result = self.console.service.ctx.vault.encrypt_bytes(msgspec.json.encode(compared))
        ended = {"due_at": None, "parameters": None, "finished_at": self.now, "status": "done", "result": result}
        about = {"kind": "compare_statement", "user_id": self.user_id, "request_hash": str(self.merchant.id)}
        return await self._row(staff_jobs, {**STAFF_JOB, **about, **ended})

    async def _environment(self, mine: dict[str, Any], *, test: bool) -> Ids:
        wrote = {"description": self.word, "firstname": self.word, "lastname": self.word, "phone_number": self.phone}
        sent = {"url": f"https://{self.word}.example/"}
        for number in range(_ROWS):
            when = {"created_at": self.now - number, "updated_at": self.now}
            reference, delivery = new_reference(self.now), new_reference(self.now)
            paid = {"status": "succeeded", "next_poll_at": None, "reference": reference}
            payment = await self._row(payments, {**PAYMENT, **mine, **wrote, **when, **paid})
            queued = {"payment_id": int(payment), "reference": delivery}
            told = {"body": self.word, "created_at": when["created_at"]}
            event = await self._row(events, {**EVENT, **mine, **told, **queued})
            await self._row(webhook_deliveries, {**DELIVERY, **mine, **sent, **when, **queued, "id": int(event)})
        kind = {"test": test, "description": self.word, "created_at": self.now}
        links = [
            await self._row(
                payment_links, {**LINK, **mine, **kind, "token": new_reference(self.now), "cash_desk": desk}
            )
            for desk in (False, True)
        ]
        period = {"since": self.now - HOUR, "until": self.now, "created_at": self.now, "expires_at": self.now + HOUR}
        direct = {"user_id": self.user_id, "status": "direct", "due_at": None}
        export = await self._row(exports, {**EXPORT, **mine, **period, **direct})
        return {"payment": [payment], "reference": [reference, delivery], "link": links, "number": [export]}

    async def _row(self, table: Any, row: dict[str, Any]) -> str:
        """The id of a new row; what the table has no column for is left out."""
        values = {name: value for name, value in row.items() if name in table.c}
        found = await self.console.service.ctx.db.write(_insert(table, tuple(values)), **values)
        return str(found[0])


@cache
def _insert(table: Any, columns: tuple[str, ...]) -> Executable:
    """Compiled once for all rows."""
    return insert(table).values({name: bindparam(name) for name in columns}).returning(table.c.id)
