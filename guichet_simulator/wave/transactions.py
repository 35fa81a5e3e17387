"""Wave's balance, its list of transactions of a day in pages, and the refund of one of them.

Source: docs/providers/wave.md, "Other calls".
"""

from datetime import date
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from guichet.clock import iso
from guichet.domain import money
from guichet_simulator.fees import balance_change, fee
from guichet_simulator.http_helpers import json_response
from guichet_simulator.models import Transaction
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.wave.api import WaveApi
from guichet_simulator.wave.payloads import error, page_of, second
from guichet_simulator.wave.sessions import WaveSessions
from guichet_simulator.wave.wallets import wallet_of

_TYPES: Final = {"": "api_checkout", "refund": "api_checkout_refund", "payout": "api_payout"}


class WaveTransactions:
    def __init__(self, api: WaveApi, sessions: WaveSessions) -> None:
        self._api = api
        self._ctx = api.ctx
        self._sessions = sessions

    async def balance(self, request: Request) -> Response:
        if refusal := self._api.check_access(request):
            return refusal
        wallet = wallet_of(request)
        total = 0 if self._ctx.dashboard(self._api.name).float_empty else sum(map(balance_change, self._moved(request)))
        return json_response({"amount": money.plain(total), "currency": wallet.currency})

    async def list_day(self, request: Request) -> Response:
        """What moved the wallet on one day: `date` (today), `first` (at most so many), `after` (a cursor)."""
        if refusal := self._api.check_access(request):
            return refusal
        day = request.query_params.get("date") or iso(self._ctx.clock.now())[:10]
        if not _is_date(day):
            return self._api.error(ResponseKind.REFUSED)
        on_day = [tx for tx in self._moved(request) if iso(tx.decided_at or tx.created_at)[:10] == day]
        body = {**page_of({f"T{tx.id}": _item(tx) for tx in on_day}, request.query_params), "date": day}
        forced = self._ctx.forced_scenario(self._api.name, "status")
        return await self._api.respond("status", forced, lambda: json_response(body))

    def _moved(self, request: Request) -> list[Transaction]:
        """What moved the wallet of the request's key, oldest first."""
        self._ctx.apply_due_decisions()
        where = "provider = 'wave' AND state = 'succeeded' AND operator = ?"
        return self._ctx.store.select(where, wallet_of(request).name)[::-1]

    async def refund(self, request: Request) -> Response:
        if refusal := self._api.check_access(request):
            return refusal
        session = self._sessions.paid_by(request, request.path_params["id"])
        if session is None:
            return error(404, "transaction-not-found").response()
        return await self._sessions.refund_session(session)


def _item(tx: Transaction) -> dict[str, Any]:
    """`amount` is what the wallet gained, `fee` what Wave kept of it. A refund names the session and its reference."""
    reversal = tx.resource == "refund"
    return {
        "timestamp": second(tx.decided_at or tx.created_at),
        "transaction_id": tx.detail.get("transaction_id") or f"T_{tx.id:010d}",
        "transaction_type": _TYPES[tx.resource],
        "amount": money.plain(balance_change(tx)),
        "fee": money.plain(fee(tx)),
        "currency": tx.currency,
        "is_reversal": reversal,
        "counterparty_name": "Awa Diop",
        "counterparty_mobile": f"+{tx.phone}" if tx.phone else None,
        "client_reference": tx.client_ref,
        "checkout_api_session_id": tx.parent if reversal else (tx.ref if tx.kind == "debit" else None),
        "batch_id": tx.detail.get("batch_id"),
        "aggregated_merchant_id": tx.detail.get("aggregated_merchant_id"),
    }


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == len("2026-01-31")
