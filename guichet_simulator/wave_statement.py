"""Wave's balance, its statement of a day, and the refund of one of its transactions.

Source: docs/providers/wave.md, "Other calls".
"""

from datetime import date
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from guichet.clock import iso
from guichet.domain import money
from guichet_simulator.http_helpers import json_response
from guichet_simulator.models import Transaction
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.wave_api import WaveApi
from guichet_simulator.wave_payloads import error, page_of, second
from guichet_simulator.wave_sessions import WaveSessions
from guichet_simulator.wave_wallets import wallet_of

#: Wave keeps a hundredth of what is collected, and gives it back with a refund.
_FEE_DIVISOR: Final = 100
_TYPES: Final = {"": "api_checkout", "refund": "api_checkout_refund", "payout": "api_payout"}


class WaveStatement:
    def __init__(self, api: WaveApi, sessions: WaveSessions) -> None:
        self._api = api
        self._ctx = api.ctx
        self._sessions = sessions

    async def balance(self, request: Request) -> Response:
        if refusal := self._api.check_access(request):
            return refusal
        wallet = wallet_of(request)
        total = sum(_net_and_fee(tx)[0] for tx in self._settled(wallet.name))
        empty = self._ctx.dashboard(self._api.name).float_empty
        return json_response({"amount": "0" if empty else money.plain(total), "currency": wallet.currency})

    async def transactions(self, request: Request) -> Response:
        """The transactions of one day in pages: `date` (today), `first` (at most so many), `after` (a cursor)."""
        if refusal := self._api.check_access(request):
            return refusal
        day = request.query_params.get("date") or iso(self._ctx.clock.now())[:10]
        if not _is_date(day):
            return self._api.error(ResponseKind.REFUSED)
        settled = self._settled(wallet_of(request).name)
        rows = {str(tx.id): _item(tx) for tx in settled if iso(tx.decided_at or tx.created_at)[:10] == day}
        return json_response({**page_of(rows, request.query_params), "date": day})

    def _settled(self, wallet: str) -> list[Transaction]:
        """What moved money in this wallet, oldest first."""
        self._ctx.apply_due_decisions()
        where = "provider = 'wave' AND state = 'succeeded' AND operator = ?"
        return self._ctx.store.select(where, wallet)[::-1]

    async def refund(self, request: Request) -> Response:
        if refusal := self._api.check_access(request):
            return refusal
        session = self._sessions.paid_by(request, request.path_params["id"])
        if session is None:
            return error(404, "transaction-not-found").response()
        return await self._sessions.refund_session(session)


def _net_and_fee(tx: Transaction) -> tuple[int, int]:
    """Hundredths: what the transaction changed in the wallet, and what Wave kept of it; below zero when it goes out."""
    if tx.resource == "payout":
        return -tx.amount, 0
    fee = -(-tx.amount // 100 // _FEE_DIVISOR) * 100
    return (tx.amount - fee, fee) if tx.kind == "debit" else (fee - tx.amount, -fee)


def _item(tx: Transaction) -> dict[str, Any]:
    net, fee = _net_and_fee(tx)
    reversal = tx.resource == "refund"
    return {
        "timestamp": second(tx.decided_at or tx.created_at),
        "transaction_id": tx.detail.get("transaction_id") or f"T_{tx.id:010d}",
        "transaction_type": _TYPES[tx.resource],
        "amount": money.plain(net),
        "fee": money.plain(fee),
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
