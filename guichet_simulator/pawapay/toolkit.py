"""pawaPay's other calls: what is open, which provider serves a number, balances, help for single transactions.

Source: docs/providers/pawapay.md, "Other calls".
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from guichet.domain import money
from guichet_simulator.context import SimulatorContext
from guichet_simulator.fees import balance_change
from guichet_simulator.http_helpers import ErrorResponse, json_object, json_response
from guichet_simulator.models import FAILED, PENDING, Transaction
from guichet_simulator.pawapay.networks import MAX_AMOUNT, PROVIDERS
from guichet_simulator.pawapay.payloads import CREDITS, failure, rejected, status_word

Endpoint = Callable[[SimulatorContext, Request], Awaitable[Response]]

_OPERATIONS: Final = ("DEPOSIT", "PAYOUT", "REFUND")


def _by_country(request: Request, providers: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The providers grouped by country; only those of the country in the query when there is one."""
    wanted = request.query_params.get("country")
    countries: dict[str, list[dict[str, Any]]] = {}
    for name, fields in providers.items():
        countries.setdefault(PROVIDERS[name].country, []).append({"provider": name, **fields})
    return [{"country": c, "providers": p} for c, p in countries.items() if wanted in (None, c)]


async def active_conf(ctx: SimulatorContext, request: Request) -> Response:
    providers = {}
    for name, provider in PROVIDERS.items():
        terms = {"minAmount": "1", "maxAmount": money.plain(MAX_AMOUNT), "decimalsInAmount": "NONE"}
        terms |= {"status": "OPERATIONAL", "authType": provider.auth}
        terms |= {"callbackUrl": ctx.dashboard("pawapay").callback_url or ""}
        currency = {"currency": provider.currency, "operationTypes": dict.fromkeys(_OPERATIONS, terms)}
        providers[name] = {"currencies": [currency]}
    signed_only = ctx.dashboard("pawapay").request_keys is not None
    signing = {"signedRequestsOnly": signed_only, "signedCallbacks": True}
    countries = _by_country(request, providers)
    return json_response({"companyName": "Simulateur", "signatureConfiguration": signing, "countries": countries})


async def availability(ctx: SimulatorContext, request: Request) -> Response:
    unusual = ctx.dashboard("pawapay").availability

    def operations(provider: str) -> list[dict[str, str]]:
        status = unusual.get(provider, "OPERATIONAL")
        return [{"operationType": operation, "status": status} for operation in _OPERATIONS]

    return json_response(_by_country(request, {name: {"operationTypes": operations(name)} for name in PROVIDERS}))


async def predict(ctx: SimulatorContext, request: Request) -> Response:
    """The first provider of the country: the simulator looks at the dialling code only."""
    phone = re.sub(r"\D", "", str((await json_object(request) or {}).get("phoneNumber", "")))
    for name, provider in PROVIDERS.items():
        if phone.startswith(provider.dial):
            return json_response({"country": provider.country, "provider": name, "phoneNumber": phone})
    return ErrorResponse(400, failure("INVALID_PARAMETER")).response()


async def balances(ctx: SimulatorContext, request: Request) -> Response:
    wanted = request.query_params.get("country")
    totals = {(provider.country, provider.currency): 0 for provider in PROVIDERS.values()}
    for tx in ctx.store.select("provider = 'pawapay' AND state = 'succeeded'"):
        provider = PROVIDERS[tx.operator]
        totals[provider.country, provider.currency] += balance_change(tx)
    rows = [
        {"country": country, "balance": money.plain(total), "currency": currency, "provider": ""}
        for (country, currency), total in totals.items()
        if wanted in (None, country)
    ]
    return json_response({"balances": rows})


def find(ctx: SimulatorContext, request: Request) -> Transaction | None:
    """The deposit, refund or payout that the path names."""
    resource = request.path_params["resource"].removesuffix("s")
    return ctx.find("pawapay", "credit" if resource in CREDITS else "debit", request.path_params["id"], resource)


async def resend_callback(ctx: SimulatorContext, request: Request) -> Response:
    tx = find(ctx, request)
    if tx is None or tx.state == PENDING:
        return rejected("INVALID_STATE" if tx else "NOT_FOUND").response(_echo(request))
    ctx.queue_callback(tx, tx.state)
    return json_response({**_echo(request), "status": "ACCEPTED"})


async def fail_enqueued(ctx: SimulatorContext, request: Request) -> Response:
    tx = find(ctx, request)
    if tx is None or status_word(tx, ctx.clock.now()) != "ENQUEUED":
        return rejected("INVALID_STATE" if tx else "NOT_FOUND").response(_echo(request))
    ctx.decide(tx, FAILED, "cancelled_by_hand")
    return json_response({**_echo(request), "status": "ACCEPTED"})


def _echo(request: Request) -> dict[str, object]:
    return {f"{request.path_params['resource'].removesuffix('s')}Id": request.path_params["id"]}
