"""The pages of the console whose cost is measured as the payments grow (`flat.py`)."""

from urllib.parse import quote

from bench import console, seed
from bench.console import People
from bench.servers import Merchant, Target
from guichet.clock import DAY, HOUR, SystemClock, earlier, later
from guichet.settings import Settings


async def requests(settings: Settings, count: int, merchant: Merchant, target: Target) -> dict[str, list[bytes]]:
    """Requests by the name of their line. Signs in people: once for a database."""
    people = await console.sign_in(settings, merchant)
    some = [number for number in range(1, count, max(1, count // 97)) if seed.status_of(number - 1) == "succeeded"]
    shown = await console.references(settings, some)
    searches = {
        "external_id": seed.external_id(count // 2),
        "reference": shown[0],
        "telephone, a tenth of all": seed.FREQUENT[0],
    }
    found = {
        f"console, {name}": [people.page(path) for path in paths] for name, paths in _merchant(count, shown).items()
    }
    found |= {
        f"admin, {name}": [people.staff_page(path) for path in paths] for name, paths in _staff(merchant, some).items()
    }
    for name, wanted in searches.items():
        found[f"admin, search: {name}"] = [await people.staff_search(target, wanted)]
    found["console, export of two hours"] = [await _export(settings, people)]
    return found


def _merchant(count: int, shown: list[str]) -> dict[str, list[str]]:
    month = f"from={console.days_ago(200)}&to={console.days_ago(170)}"
    return {
        "overview": [""],
        "payments: first page": ["/payments"],
        "payments, status": ["/payments?status=failed"],
        "payments, from/to": [f"/payments?{month}"],
        "payments, before one in the middle": [f"/payments?before={earlier(SystemClock().now(), 180 * DAY)}.1"],
        **{
            f"search: {name}": [f"/payments?q={quote(each)}" for each in wanted]
            for name, wanted in console.searches(count, shown).items()
        },
        "payment": [f"/payments/{each}" for each in shown],
        "balance and statement": ["/balance"],
        "statement, from/to": [f"/balance?{month}"],
        "exports": ["/exports"],
        "deliveries": ["/webhooks/deliveries"],
        "deliveries, status and event": ["/webhooks/deliveries?status=success&event=payment.failed"],
        "deliveries, a status that none has": ["/webhooks/deliveries?status=failed"],
        "activity": ["/activity"],
        "requests of the API": ["/developers/requests"],
        "links": ["/links"],
    }


def _staff(merchant: Merchant, some: list[int]) -> dict[str, list[str]]:
    return {
        "overview": [""],
        "merchants": ["/merchants"],
        "merchant": [f"/merchants/{merchant.id}"],
        "payment": [f"/payments/{number}" for number in some],
        "wallets": ["/wallets"],
        "wallets of a merchant": [f"/wallets/{merchant.id}"],
        "deliveries": ["/deliveries"],
        "deliveries of a merchant, a status that none has": [f"/deliveries?merchant={merchant.id}&status=failed"],
        "incidents": ["/incidents"],
        "modes": ["/modes"],
        "reconciliation": ["/reconciliation"],
        "ledger": ["/ledger"],
        "audit log": ["/audit-log"],
    }


async def _export(settings: Settings, people: People) -> bytes:
    """A file of two hours of payments far in the past."""
    begun = earlier(SystemClock().now(), 200 * DAY)
    number = await console.direct_export(settings, people.merchant, begun, later(begun, 2 * HOUR))
    return people.page(f"/exports/{number}/file")
