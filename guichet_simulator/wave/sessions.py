"""Wave's checkout sessions and their refund, its balance, and its list of the transactions of a day in pages.

Source: docs/providers/wave.md, "Initiating a payment", "Refunds", "Other calls".
"""

from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from guichet.clock import iso
from guichet.domain import money
from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import Refused, hundredths, json_object, json_response, new_uuid
from guichet_simulator.models import EXPIRED, FAILED, PENDING, SUCCEEDED, Transaction
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.transactions import NewTransaction
from guichet_simulator.wave.merchants import Wallet, WaveMerchants, find_own, search, wallet_of
from guichet_simulator.wave.payloads import FEES, error, page_of, second, session_object

_MAX_REFERENCE: Final = 255
_TYPES: Final = {"": "api_checkout", "refund": "api_checkout_refund", "payout": "api_payout"}


class WaveSessions:
    def __init__(self, api: SimulatedProvider, merchants: WaveMerchants) -> None:
        self._api = api
        self._merchants = merchants

    async def create(self, request: Request) -> Response:
        body = await json_object(request)
        if not body:
            raise Refused(error(400, "request-not-json"))
        wallet = wallet_of(request)
        if invalid := _invalid_fields(body, wallet):
            details = [{"loc": [name], "msg": "invalid value"} for name in invalid]
            return self._api.error(ResponseKind.REFUSED, echo={"details": details})
        self._merchants.refuse_unknown(request, body)
        mobile = str(body.get("restrict_payer_mobile") or "").removeprefix("+") or None
        digits, ref = mobile or body["amount"], "cos-" + new_uuid().replace("-", "")[:16]
        amount = hundredths(body["amount"], wallet.currency)
        assert amount is not None
        new = NewTransaction(
            "debit",
            self._api.choose_scenario("debit", digits),
            operator=wallet.name,
            ref=ref,
            client_ref=body.get("client_reference"),
            phone=mobile,
            amount=amount,
            currency=wallet.currency,
            detail={
                "digits": digits,
                "page_url": f"{self._api.address}/c/{ref}",
                "success_url": body["success_url"],
                "cancel_url": body["error_url"],
                "aggregated_merchant_id": body.get("aggregated_merchant_id"),
                "transaction_id": "T_" + new_uuid().replace("-", "")[:12].upper(),
            },
        )
        return await self._api.take(new, lambda tx: json_response(session_object(tx)))

    async def read(self, request: Request) -> Response:
        session = self._find_session(request)
        return await self._api.respond_to_status(session, session_object(session))

    def _find_session(self, request: Request) -> Transaction:
        return find_own(self._api, request, "debit", "", "checkout-session-not-found")

    async def by_transaction(self, request: Request) -> Response:
        transaction_id = request.query_params.get("transaction_id")
        return json_response(session_object(self.paid_by(request, transaction_id, "checkout-session-not-found")))

    def paid_by(self, request: Request, transaction_id: str | None, missing: str) -> Transaction:
        """The session that Wave's transaction paid. Raises Refused with the code `missing`."""
        where = (
            "kind = 'debit' AND operator = ? AND state = 'succeeded' AND json_extract(detail, '$.transaction_id') = ?"
        )
        sessions = self._api.select(where, wallet_of(request).name, transaction_id)
        if not sessions:
            raise Refused(error(404, missing))
        return sessions[0]

    async def search(self, request: Request) -> Response:
        return await search(self._api, request, "debit", "", session_object)

    async def expire(self, request: Request) -> Response:
        session = self._find_session(request)
        if session.state != PENDING:
            raise Refused(error(409, "checkout-session-not-open"))
        self._api.ctx.decide(session, EXPIRED, "expired")
        return Response(status_code=200)

    async def refund(self, request: Request) -> Response:
        return await self.refund_session(self._find_session(request))

    async def refund_session(self, session: Transaction) -> Response:
        """Refunds the whole session at once. It may be repeated: only the first one moves money."""
        if session.state != SUCCEEDED:
            raise Refused(error(409, "checkout-refund-failed"))
        if self._api.ctx.store.refunded_amount(session):
            return Response(status_code=200)
        scenario = self._api.choose_scenario("credit", session.phone or session.detail["digits"])
        new = NewTransaction(
            "credit",
            scenario,
            operator=session.operator,
            ref="rf-" + new_uuid(),
            resource="refund",
            client_ref=session.client_ref,
            phone=session.phone,
            parent=session.ref,
            amount=session.amount,
            currency=session.currency,
        )

        def decided(tx: Transaction) -> Response:
            refused = scenario.final_state in (FAILED, EXPIRED)
            self._api.ctx.decide(tx, FAILED if refused else SUCCEEDED, scenario.reason)
            return self._api.error(ResponseKind.REFUSED, "credit") if refused else Response(status_code=200)

        return await self._api.take(new, decided)


class WaveTransactions:
    def __init__(self, api: SimulatedProvider, sessions: WaveSessions) -> None:
        self._api = api
        self._sessions = sessions

    async def balance(self, request: Request) -> Response:
        wallet = wallet_of(request)
        empty = self._api.dashboard.float_empty
        total = 0 if empty else sum(tx.balance_change(FEES) for tx in self._moved(request))
        return json_response({"amount": money.plain(total), "currency": wallet.currency})

    async def list_day(self, request: Request) -> Response:
        """What moved the wallet on one day: `date` (today), `first` (at most so many), `after` (a cursor)."""
        day = request.query_params.get("date") or iso(self._api.ctx.clock.now())[:10]
        if not _is_date(day):
            return self._api.error(ResponseKind.REFUSED)
        on_day = [tx for tx in self._moved(request) if iso(tx.decided_at or tx.created_at)[:10] == day]
        body = {**page_of({f"T{tx.id}": _item(tx) for tx in on_day}, request.query_params), "date": day}
        return await self._api.respond_to_status(None, body)

    def _moved(self, request: Request) -> list[Transaction]:
        """What moved the wallet of the request's key, oldest first, whichever key it was made with."""
        self._api.ctx.apply_due_decisions()
        where = "provider = 'wave' AND state = 'succeeded' AND operator = ?"
        return self._api.ctx.store.select(where, wallet_of(request).name)[::-1]

    async def refund(self, request: Request) -> Response:
        session = self._sessions.paid_by(request, request.path_params["id"], "transaction-not-found")
        return await self._sessions.refund_session(session)


def _invalid_fields(body: Mapping[str, Any], wallet: Wallet) -> list[str]:
    mobile = str(body.get("restrict_payer_mobile") or "")
    valid = {
        "amount": isinstance(body.get("amount"), str) and hundredths(body["amount"], wallet.currency) is not None,
        "currency": body.get("currency") == wallet.currency,
        "success_url": str(body.get("success_url", "")).startswith("http"),
        "error_url": str(body.get("error_url", "")).startswith("http"),
        "client_reference": len(str(body.get("client_reference") or "")) <= _MAX_REFERENCE,
        "restrict_payer_mobile": not mobile
        or (mobile[0] == "+" and mobile[1:].isdigit() and wallet.serves(mobile[1:])),
    }
    return [name for name, is_valid in valid.items() if not is_valid]


def _item(tx: Transaction) -> dict[str, Any]:
    """`amount` is what the wallet gained, `fee` what Wave kept of it. A refund names the session and its reference."""
    reversal = tx.resource == "refund"
    return {
        "timestamp": second(tx.decided_at or tx.created_at),
        "transaction_id": tx.detail.get("transaction_id") or f"T_{tx.id:010d}",
        "transaction_type": _TYPES[tx.resource],
        "amount": money.plain(tx.balance_change(FEES)),
        "fee": money.plain(tx.fee(FEES)),
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
