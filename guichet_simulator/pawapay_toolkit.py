"""pawaPay's informative calls: what is open, who serves a number, what the wallets hold.

Source: docs/providers/pawapay.md, "Other calls".
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from guichet.domain import money
from guichet_simulator.base import Fault, json_answer, json_object
from guichet_simulator.context import Desk
from guichet_simulator.pawapay_payloads import failure
from guichet_simulator.pawapay_providers import PROVIDERS

MAX_AMOUNT: Final = 2_000_000_00
#: An informative call.
Call = Callable[[Desk, Request], Awaitable[Response]]

_OPERATIONS: Final = ("DEPOSIT", "PAYOUT", "REFUND")


def _by_country(request: Request, providers: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Providers grouped by country, only the country asked for if one was."""
    wanted = request.query_params.get("country")
    countries: dict[str, list[dict[str, Any]]] = {}
    for name, shown in providers.items():
        countries.setdefault(PROVIDERS[name].country, []).append({"provider": name, **shown})
    return [{"country": c, "providers": p} for c, p in countries.items() if wanted in (None, c)]


async def active_conf(desk: Desk, request: Request) -> Response:
    providers = {}
    for name, provider in PROVIDERS.items():
        terms = {"minAmount": "1", "maxAmount": money.plain(MAX_AMOUNT), "decimalsInAmount": "NONE"}
        terms |= {"status": "OPERATIONAL", "authType": provider.auth}
        currency = {"currency": provider.currency, "operationTypes": dict.fromkeys(_OPERATIONS, terms)}
        providers[name] = {"currencies": [currency]}
    signing = {"signedRequestsOnly": False, "signedCallbacks": True}
    countries = _by_country(request, providers)
    return json_answer({"companyName": "Simulateur", "signatureConfiguration": signing, "countries": countries})


async def availability(desk: Desk, request: Request) -> Response:
    open_for = [{"operationType": operation, "status": "OPERATIONAL"} for operation in _OPERATIONS]
    return json_answer(_by_country(request, {name: {"operationTypes": open_for} for name in PROVIDERS}))


async def predict(desk: Desk, request: Request) -> Response:
    """By country code only: the first provider of the country."""
    phone = re.sub(r"\D", "", str((await json_object(request) or {}).get("phoneNumber", "")))
    for name, provider in PROVIDERS.items():
        if phone.startswith(provider.dial):
            return json_answer({"country": provider.country, "provider": name, "phoneNumber": phone})
    return Fault(400, failure("INVALID_PARAMETER")).answer()


async def balances(desk: Desk, request: Request) -> Response:
    wanted = request.query_params.get("country")
    totals = {(provider.country, provider.currency): 0 for provider in PROVIDERS.values()}
    for tx in desk.store.select("family = 'pawapay' AND state = 'succeeded'"):
        provider = PROVIDERS[tx.operator]
        totals[provider.country, provider.currency] += tx.amount if tx.kind == "debit" else -tx.amount
    rows = [
        {"country": country, "balance": money.plain(total), "currency": currency, "provider": ""}
        for (country, currency), total in totals.items()
        if wanted in (None, country)
    ]
    return json_answer({"balances": rows})
