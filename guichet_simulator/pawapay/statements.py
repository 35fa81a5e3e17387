"""pawaPay's statements: one CSV file for a wallet and a period, ready a while after it was asked for.

Source: docs/providers/pawapay.md, "Statements".
"""

import csv
import io
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from guichet.clock import DAY, SECOND, Instant, iso, read_date
from guichet.domain import money
from guichet_simulator.context import SimulatorContext
from guichet_simulator.fees import fee
from guichet_simulator.http_helpers import json_object, json_response, new_uuid
from guichet_simulator.models import Transaction
from guichet_simulator.pawapay.networks import PROVIDERS
from guichet_simulator.pawapay.payloads import failure

#: How long a statement is in the making, and the longest period, in microseconds.
_READY_AFTER: Final = 3 * SECOND
_MAX_PERIOD: Final = 31 * DAY
_COLUMNS: Final = (
    "Creation Date", "MSISDN", "Transaction ID", "Amount", "Currency", "Country", "MNO", "Type",
)  # fmt: skip
_WALLETS: Final = frozenset((provider.country, provider.currency) for provider in PROVIDERS.values())


def _setting(statement_id: str) -> str:
    return f"pawapay-statement:{statement_id}"


async def create(ctx: SimulatorContext, request: Request) -> Response:
    body = await json_object(request) or {}
    wallet = body.get("wallet")
    start, end = (read_date(str(body.get(name, ""))) for name in ("startDate", "endDate"))
    known = isinstance(wallet, dict) and (wallet.get("country"), wallet.get("currency")) in _WALLETS
    if not known or not body.get("callbackUrl") or start is None or end is None or not 0 <= end - start <= _MAX_PERIOD:
        return json_response({"status": "REJECTED", **failure("INVALID_PARAMETER")})
    statement_id, now = new_uuid(), ctx.clock.now()
    ctx.store.set_setting(_setting(statement_id), {"wallet": wallet, "start": start, "end": end, "created": now})
    return json_response({"statementId": statement_id, "status": "ACCEPTED", "created": iso(now)})


async def read(ctx: SimulatorContext, request: Request) -> Response:
    statement_id = request.path_params["id"]
    found: dict[str, Any] | None = ctx.store.setting(_setting(statement_id))
    if found is None:
        return json_response({"status": "NOT_FOUND"})
    ready = ctx.clock.now() - found["created"] >= _READY_AFTER
    data = {
        "statementId": statement_id,
        "status": "COMPLETED" if ready else "PROCESSING",
        "wallet": found["wallet"],
        "created": iso(found["created"]),
        "startDate": iso(found["start"])[:19],
        "endDate": iso(found["end"])[:19],
    }
    if ready:
        data |= {"downloadUrl": f"{ctx.public_url}/pawapay/statements/{statement_id}.csv"}
    return json_response({"status": "FOUND", "data": data})


async def download(ctx: SimulatorContext, request: Request) -> Response:
    """The file: a line for each transaction that changed the wallet, and one for what was charged for it."""
    found: dict[str, Any] | None = ctx.store.setting(_setting(request.path_params["id"]))
    if found is None:
        return Response(status_code=404)
    ctx.apply_due_decisions()
    file = io.StringIO()
    rows = csv.writer(file)
    rows.writerow(_COLUMNS)
    wallet, start, end = found["wallet"], found["start"], found["end"]
    for tx in sorted(ctx.store.select("provider = 'pawapay' AND state = 'succeeded'"), key=lambda tx: tx.id):
        mine = (PROVIDERS[tx.operator].country, tx.currency) == (wallet["country"], wallet["currency"])
        if mine and tx.decided_at is not None and start <= tx.decided_at <= end:
            rows.writerows(_rows(tx, tx.decided_at))
    return Response(file.getvalue(), media_type="text/csv")


def _rows(tx: Transaction, at: Instant) -> list[tuple[str, ...]]:
    word = tx.resource.upper()
    gain = tx.amount if tx.kind == "debit" else -tx.amount

    def row(amount: int, kind: str) -> tuple[str, ...]:
        date = iso(at)[:19].replace("T", " ")
        country = PROVIDERS[tx.operator].country
        return (date, tx.phone or "", tx.ref, money.plain(amount), tx.currency, country, tx.operator, kind)

    return [row(gain, word), *([row(-fee(tx), f"{word}_FEE")] if fee(tx) else [])]
