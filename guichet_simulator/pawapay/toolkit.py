"""pawaPay's other calls: what is open, balances, and statements (one CSV file for a wallet and a period, ready a while
after it was asked for).

Source: docs/providers/pawapay.md, "Other calls", "Statements".
"""

import csv
import io
from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from guichet.clock import DAY, SECOND, Instant, iso, read_date
from guichet.domain import money
from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import json_object, json_response, new_uuid
from guichet_simulator.models import Transaction
from guichet_simulator.pawapay.payloads import FEES, MAX_AMOUNT, PROVIDERS, failure

Endpoint = Callable[[SimulatedProvider, Request], Awaitable[Response]]

_OPERATIONS: Final = ("DEPOSIT", "PAYOUT", "REFUND")
#: How long a statement is in the making, and the longest period, in microseconds.
_READY_AFTER: Final = 3 * SECOND
_MAX_PERIOD: Final = 31 * DAY
_COLUMNS: Final = (
    "Creation Date", "MSISDN", "Transaction ID", "Amount", "Currency", "Country", "MNO", "Type",
)  # fmt: skip
_WALLETS: Final = frozenset((provider.country, provider.currency) for provider in PROVIDERS.values())


def _by_country(request: Request, providers: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The providers grouped by country; only those of the country in the query when there is one."""
    country_filter = request.query_params.get("country")
    countries: dict[str, list[dict[str, Any]]] = {}
    for name, fields in providers.items():
        countries.setdefault(PROVIDERS[name].country, []).append({"provider": name, **fields})
    return [{"country": c, "providers": p} for c, p in countries.items() if country_filter in (None, c)]


async def active_conf(api: SimulatedProvider, request: Request) -> Response:
    providers = {}
    for name, provider in PROVIDERS.items():
        terms = {"minTransactionLimit": "1", "maxTransactionLimit": money.plain(MAX_AMOUNT), "decimalsInAmount": "NONE"}
        terms |= {"status": "OPERATIONAL", "authType": provider.auth}
        terms |= {"callbackUrl": api.dashboard.callback_url or ""}
        currency = {"currency": provider.currency, "operationTypes": dict.fromkeys(_OPERATIONS, terms)}
        providers[name] = {"currencies": [currency]}
    signed_only = api.dashboard.request_keys is not None
    signing = {"signedRequestsOnly": signed_only, "signedCallbacks": True}
    countries = _by_country(request, providers)
    company = api.dashboard.company or "Simulateur"
    return json_response({"companyName": company, "signatureConfiguration": signing, "countries": countries})


async def availability(api: SimulatedProvider, request: Request) -> Response:
    unusual = api.dashboard.availability

    def operations(provider: str) -> list[dict[str, str]]:
        status = unusual.get(provider, "OPERATIONAL")
        return [{"operationType": operation, "status": status} for operation in _OPERATIONS]

    return json_response(_by_country(request, {name: {"operationTypes": operations(name)} for name in PROVIDERS}))


async def balances(api: SimulatedProvider, request: Request) -> Response:
    country_filter = request.query_params.get("country")
    totals = {(provider.country, provider.currency): 0 for provider in PROVIDERS.values()}
    for tx in api.select("state = 'succeeded'"):
        provider = PROVIDERS[tx.operator]
        totals[provider.country, provider.currency] += tx.balance_change(FEES)
    rows = [
        {"country": country, "balance": money.plain(total), "currency": currency, "provider": ""}
        for (country, currency), total in totals.items()
        if country_filter in (None, country)
    ]
    return json_response({"balances": rows})


def _setting(statement_id: str) -> str:
    return f"pawapay-statement:{statement_id}"


async def create_statement(api: SimulatedProvider, request: Request) -> Response:
    body = await json_object(request)
    wallet = body.get("wallet")
    start, end = (read_date(str(body.get(name, ""))) for name in ("startDate", "endDate"))
    known = isinstance(wallet, dict) and (wallet.get("country"), wallet.get("currency")) in _WALLETS
    if not known or not body.get("callbackUrl") or start is None or end is None or not 0 <= end - start <= _MAX_PERIOD:
        return json_response({"status": "REJECTED", **failure("INVALID_PARAMETER")})
    statement_id, now = new_uuid(), api.ctx.clock.now()
    api.ctx.store.set_setting(_setting(statement_id), {"wallet": wallet, "start": start, "end": end, "created": now})
    return json_response({"statementId": statement_id, "status": "ACCEPTED", "created": iso(now)})


async def read_statement(api: SimulatedProvider, request: Request) -> Response:
    statement_id = request.path_params["id"]
    statement: dict[str, Any] | None = api.ctx.store.setting(_setting(statement_id))
    if statement is None:
        return json_response({"status": "NOT_FOUND"})
    ready = api.ctx.clock.now() - statement["created"] >= _READY_AFTER
    data = {
        "statementId": statement_id,
        "status": "COMPLETED" if ready else "PROCESSING",
        "wallet": statement["wallet"],
        "created": iso(statement["created"]),
        "startDate": iso(statement["start"])[:19],
        "endDate": iso(statement["end"])[:19],
    }
    if ready:
        data |= {"downloadUrl": f"{api.address}/statements/{statement_id}.csv"}
    return json_response({"status": "FOUND", "data": data})


async def download_statement(api: SimulatedProvider, request: Request) -> Response:
    """The file: a line for each transaction that changed the wallet, and one for what was charged for it."""
    statement: dict[str, Any] | None = api.ctx.store.setting(_setting(request.path_params["id"]))
    if statement is None:
        return Response(status_code=404)
    file = io.StringIO()
    rows = csv.writer(file)
    rows.writerow(_COLUMNS)
    wallet, start, end = statement["wallet"], statement["start"], statement["end"]
    for tx in reversed(api.select("state = 'succeeded'")):
        in_wallet = (PROVIDERS[tx.operator].country, tx.currency) == (wallet["country"], wallet["currency"])
        if in_wallet and tx.decided_at is not None and start <= tx.decided_at <= end:
            rows.writerows(_rows(tx, tx.decided_at))
    return Response(file.getvalue(), media_type="text/csv")


def _rows(tx: Transaction, at: Instant) -> list[tuple[str, ...]]:
    word = tx.resource.upper()
    gain = tx.amount if tx.kind == "debit" else -tx.amount

    def row(amount: int, kind: str) -> tuple[str, ...]:
        date = iso(at)[:19].replace("T", " ")
        country = PROVIDERS[tx.operator].country
        return (date, tx.phone or "", tx.ref, money.plain(amount), tx.currency, country, tx.operator, kind)

    return [row(gain, word), *([row(-tx.fee(FEES), f"{word}_FEE")] if tx.fee(FEES) else [])]
