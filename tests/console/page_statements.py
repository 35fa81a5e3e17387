"""How many statements the overview and the lists of the console take, counted at the database; for a test and for the
budget (`bench/budget`)."""

from collections.abc import Awaitable, Callable
from typing import Final

from guichet.bootstrap import database
from guichet.settings import Settings
from tests.console.conftest import ConsoleBrowser, ConsoleFixture
from tests.console.pages import Page
from tests.console.samples import Sample
from tests.fakes.recording_database import RecordingDatabase
from tests.service_fixture import open_service

#: By the name of a page, its address after that of the merchant and the environment.
MERCHANT_PAGES: Final = {
    "overview": "",
    "payments": "/payments",
    "payments of a status and a period": "/payments?status=succeeded&from=2020-01-01&to=2099-12-31",
    "payments of an operator": "/payments?operator=mtn&least=1",
    "payments by name": "/payments?q=kora",
    "payments by number": "/payments?q=97000001",
    "payments by amount": "/payments?q=5000",
    "links": "/links",
    "cash desk": "/cash-desk",
    "balance": "/balance",
    "exports": "/exports",
    "webhooks": "/webhooks/deliveries",
    "requests": "/developers/requests",
    "team": "/team",
    "activity": "/activity",
}
STAFF_PAGES: Final = (
    "",
    "/merchants",
    "/incidents",
    "/approvals",
    "/payments",
    "/modes",
    "/wallets",
    "/treasury",
    "/reconciliation",
    "/deliveries",
    "/staff",
    "/audit-log",
)


async def statements_of_pages(settings: Settings) -> dict[str, int]:
    """The statements of each page, of a merchant and of staff with more rows of every kind than a page shows. The
    schema must be there."""
    db = RecordingDatabase(database(settings))
    counts: dict[str, int] = {}

    async def count(name: str, ask: Callable[[], Awaitable[Page]]) -> None:
        db.seen.clear()
        page = await ask()
        assert page.status == 200, (name, page.status)
        counts[name] = len(db.seen)

    async with open_service(settings, db=db) as service:
        console = ConsoleFixture(service)
        merchant = await console.merchant("Kora")
        owner = await console.joined("awa@example.com", merchant)
        sample = Sample(console, merchant, "Kora", "22997000001", 1)
        await sample.fill()
        await owner.get("/console")  # What the first page of a session does once is none of a page's own.
        for name, path in MERCHANT_PAGES.items():
            address = f"/console/{merchant.id}/live{path}"
            await count(name, lambda address=address: owner.get(address))  # type: ignore[misc]
        staff = await console.joined("zoe@example.com", None, "admin")
        await service.run_worker()
        await staff.get("/admin")
        for path in STAFF_PAGES:
            await count(f"/admin{path}", lambda path=path: staff.get(f"/admin{path}"))  # type: ignore[misc]
        await staff.get("/admin/payments")
        await count("/admin/payments, found", lambda: _search(staff, sample.phone))
    return counts


async def _search(staff: ConsoleBrowser, typed: str) -> Page:
    form = next(form for form in staff.page.forms() if "q" in form.fields)
    return await staff.post("/admin/payments", {**form.fields, "q": typed})
