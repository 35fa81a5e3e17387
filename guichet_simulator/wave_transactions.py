"""Wave's list of transactions: what moved the wallet on one day, in pages (docs/providers/wave.md, "Statement")."""

import re
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from guichet.clock import iso, whole_second
from guichet.domain import money
from guichet_simulator.fees import balance_change, fee
from guichet_simulator.http_helpers import json_response
from guichet_simulator.models import Transaction
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.wave_api import WaveApi

_PER_PAGE: Final = 50
_MOST_PER_PAGE: Final = 1000
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_CURSOR: Final = re.compile(r"T([0-9]{1,12})")


class WaveTransactions:
    def __init__(self, api: WaveApi) -> None:
        self._api = api
        self._ctx = api.ctx

    async def list(self, request: Request) -> Response:
        if refusal := self._api.check_access(request):
            return refusal
        query, today = request.query_params, iso(self._ctx.clock.now())[:10]
        date, first = query.get("date") or today, query.get("first") or str(_PER_PAGE)
        after = _CURSOR.fullmatch(query.get("after") or "T0")
        if not _DATE.fullmatch(date) or not first.isdigit() or not after:
            return self._api.error(ResponseKind.REFUSED)
        self._ctx.apply_due_decisions()
        moved = self._ctx.store.select("provider = 'wave' AND state = 'succeeded'")
        rest = sorted((tx for tx in moved if _day(tx) == date and tx.id > int(after[1])), key=lambda tx: tx.id)
        page = rest[: max(1, min(int(first), _MOST_PER_PAGE))]
        info = {
            "start_cursor": query.get("after"),
            "end_cursor": f"T{page[-1].id}" if page else None,
            "has_next_page": len(rest) > len(page),
        }
        body = {"page_info": info, "date": date, "items": [_item(tx) for tx in page]}
        forced = self._ctx.forced_scenario(self._api.name, "status")
        return await self._api.respond("status", forced, lambda: json_response(body))


def _day(tx: Transaction) -> str:
    return "" if tx.decided_at is None else iso(tx.decided_at)[:10]


def _item(tx: Transaction) -> dict[str, Any]:
    """`amount` is what the wallet gained, `fee` what Wave kept of it. A refund names the session and its reference."""
    refund = tx.parent is not None
    kind = "api_checkout" if tx.kind == "debit" else "api_checkout_refund" if refund else "api_payout"
    session = tx.ref if tx.kind == "debit" else tx.parent
    item: dict[str, Any] = {
        "timestamp": iso(whole_second(tx.decided_at or tx.created_at))[:19] + "Z",
        "transaction_id": tx.detail.get("transaction_id") or f"T_{tx.id:010d}",
        "transaction_type": kind,
        "amount": money.plain(balance_change(tx)),
        "fee": money.plain(fee(tx)),
        "currency": tx.currency,
        "is_reversal": refund,
        "client_reference": tx.client_ref,
    }
    return item | ({"checkout_api_session_id": session} if session else {})
