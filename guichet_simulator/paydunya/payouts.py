"""Payouts of the simulated PayDunya: announced, submitted once, asked about; and the balance of each country."""

from collections.abc import Mapping
from typing import Any, Final

import aiohttp
from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator.background import send_request
from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import Refused, json_object, json_response, new_uuid
from guichet_simulator.models import SUCCEEDED, CallbackRequest, Transaction
from guichet_simulator.paydunya.payloads import (
    COUNTRIES,
    MASTER_KEY,
    answer,
    check_payout,
    payout_key,
    payout_payload,
    refusal,
)
from guichet_simulator.scenarios import BY_NAME, ResponseKind
from guichet_simulator.transactions import NewTransaction

#: Responses that come to the announcement: the account may not pay, or the payee not be paid. The others come to the
#: submission.
_SAID_FIRST: Final = frozenset(
    {
        ResponseKind.REFUSED,
        ResponseKind.BUSINESS_500,
        ResponseKind.NOT_CONFIGURED,
        ResponseKind.UNAUTHORIZED,
        ResponseKind.RATE_LIMITED,
    }
)
_NO_CALLBACK: Final = refusal("4002", "the callback is not accessible")
_TRY_SECONDS: Final = 5
_NO_PAYOUT: Final = refusal("4004", "Invalid disburse_invoice")


class PayDunyaPayouts:
    def __init__(self, api: SimulatedProvider) -> None:
        self._api = api
        self._store = api.ctx.store

    async def announce(self, request: Request) -> Response:
        body = await json_object(request)
        operator, number, amount = check_payout(body)
        scenario, token = self._api.choose_scenario("credit", number), new_uuid().replace("-", "")[:16]
        payout = {
            "operator": operator,
            "number": number,
            "amount": amount,
            "withdraw_mode": body["withdraw_mode"],
            "callback_url": body.get("callback_url"),
            "scenario": scenario.name,
            "master_key": request.headers[MASTER_KEY],
            "company": self._api.dashboard.company,
        }
        if not scenario.stored and scenario.response in _SAID_FIRST:
            return self._api.error(scenario.response, "credit")
        if not await _answers(body.get("callback_url")):
            raise Refused(_NO_CALLBACK)

        def create() -> Response:
            self._store.set_setting(payout_key(token), payout)
            return json_response({"response_code": "00", "disburse_token": token})

        return await self._api.respond_without_money(create)

    async def submit(self, request: Request) -> Response:
        """Once for each announcement, and once for each `disburse_id`."""
        body = await json_object(request)
        token, reference = str(body.get("disburse_invoice")), str(body.get("disburse_id") or new_uuid())
        payout = self._find(token)
        if payout is None:
            raise Refused(_NO_PAYOUT)
        if self._api.select("kind = 'credit' AND client_ref = ?", reference) or self._api.find("credit", token):
            raise Refused(refusal("5000", "disburse_id already used"))
        new = NewTransaction(
            "credit",
            BY_NAME[payout["scenario"]],
            operator=payout["operator"],
            ref=token,
            client_ref=reference,
            phone=payout["number"],
            amount=payout["amount"],
            callback_url=payout["callback_url"],
        )
        return await self._api.take(new, lambda tx: json_response(_submitted(tx)))

    def _find(self, token: str) -> dict[str, Any] | None:
        payout: dict[str, Any] | None = self._store.setting(payout_key(token))
        return payout if payout is not None and payout["company"] == self._api.dashboard.company else None

    async def status(self, request: Request) -> Response:
        body = await json_object(request)
        token = str(body.get("disburse_invoice"))
        payout = self._find(token)
        if payout is None:
            raise Refused(_NO_PAYOUT)
        shown = payout_payload(token, payout, self._api.find("credit", token), self._api.ctx.clock.now())
        return await self._api.respond_to_status(None, {"response_code": "00", **shown})

    async def balance(self, request: Request) -> Response:
        balances = dict.fromkeys(COUNTRIES.values(), 0)
        filled = not self._api.dashboard.float_empty
        for tx in self._api.select("state = 'succeeded'"):
            if filled and (country := COUNTRIES.get(tx.operator)):
                balances[country] += tx.amount // 100 * (1 if tx.kind == "debit" else -1)
        fields = {f"Balance {country}": f"{amount} XOF" for country, amount in balances.items()}
        return json_response({"success": True, "description": "Balance of your accounts", **fields})

    def callback_payload(self, tx: Transaction, status: str) -> dict[str, Any]:
        payout: Mapping[str, Any] = self._store.setting(payout_key(tx.ref))
        return payout_payload(tx.ref, payout, tx, self._api.ctx.clock.now(), status)


async def _answers(address: object) -> bool:
    """Whether the client's address answers an empty POST, which PayDunya tries at once."""
    if not isinstance(address, str) or not address.startswith("http"):
        return False
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TRY_SECONDS)) as session:
        status, _ = await send_request(session, CallbackRequest(address, b""))
    return status is not None and 200 <= status < 300


def _submitted(tx: Transaction) -> dict[str, object]:
    """One that succeeds at once states no status, as in the examples of Wave and Orange."""
    if tx.state == SUCCEEDED:
        return answer("00", "Transaction completed successfully", transaction_id=f"TFA-TX-{tx.id:06d}")
    return answer("00", "Transaction pending", status="pending", transaction_id=f"TFA-TX-{tx.id:06d}")
