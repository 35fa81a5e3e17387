"""FedaPay's transactions: created, then paid by PIN or on its page.

Source: docs/providers/fedapay.md, "Initiating a payment".
"""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from guichet.clock import SECOND
from guichet_simulator import phone
from guichet_simulator.fedapay.objects import FedaPayObjects
from guichet_simulator.fedapay.payloads import (
    MIN_PAYIN,
    NOT_ALLOWED,
    PUSH_MODES,
    SANDBOX_MODE,
    check_creation,
    check_description,
    error,
    phone_of,
    transaction_object,
)
from guichet_simulator.fedapay.records import LIFE, Record
from guichet_simulator.http_helpers import Refused, credential, json_object, json_response
from guichet_simulator.transactions import NewTransaction

#: A country, and its dialling code.
COUNTRIES: Final = dict(PUSH_MODES.values()) | {"bf": "226", "ml": "223"}


def is_sandbox(request: Request) -> bool:
    return "_sandbox_" in (credential(request) or "")


class FedaPayTransactions(FedaPayObjects):
    kind = "debit"
    name = "transaction"
    missing = error(404, "Transaction introuvable")

    async def create(self, request: Request) -> Response:
        body = await json_object(request)
        check_description(body)
        check_creation(body, MIN_PAYIN)
        return self.add(request, body, {"callback_url": body.get("callback_url")})

    async def token(self, request: Request) -> Response:
        record = self.find(request)
        token = self._records.token(record)
        return json_response({"token": token, "url": f"{self._api.address}/pay/{token}"})

    async def push(self, request: Request) -> Response:
        """Asks the customer for the PIN."""
        mode, body = request.path_params["mode"], await json_object(request)
        is_open = mode == SANDBOX_MODE if is_sandbox(request) else mode in PUSH_MODES
        if not is_open:
            raise Refused(error(400, NOT_ALLOWED))
        record = self._records.by_token(body.get("token"))
        if record is None or self._records.is_expired(record, self._api.ctx.clock.now()):
            raise Refused(error(400, "Jeton invalide"))
        digits = phone_of(body.get("phone_number"), COUNTRIES)
        if mode in PUSH_MODES and not digits.startswith(PUSH_MODES[mode][1]):
            raise Refused(error(400, "Numéro invalide", {"phone_number": ["est invalide"]}))
        if self._records.transaction(record) is not None:
            raise Refused(error(400, "Transaction déjà en cours"))
        intent = {"id": record["id"], "status": "pending"}
        new = self._asked(record, mode, digits)
        return await self._api.take(new, lambda _: json_response({"v1/payment_intent": intent}))

    def _asked(self, record: Record, mode: str, phone: str | None, page: str | None = None) -> NewTransaction:
        """`phone`: None on the page, where the amount tells the scenario."""
        digits = phone or str(record["amount"])
        return NewTransaction(
            "debit",
            self._api.choose_scenario("debit", digits),
            operator=mode,
            ref=str(record["id"]),
            client_ref=record["merchant_reference"],
            phone=phone,
            amount=record["amount"] * 100,
            lifetime=LIFE / SECOND,
            detail={
                "digits": digits,
                "page_url": page,
                "success_url": record.get("callback_url"),
                "cancel_url": record.get("callback_url"),
            },
        )

    async def page(self, request: Request) -> Response:
        """The page, on which the customer chooses a network: `mode`, else MTN Bénin."""
        token = request.path_params["token"]
        record = self._records.by_token(token)
        if record is None:
            return phone.page(self._api.ctx, "unknown.html", status=404)
        mode, page = request.query_params.get("mode", "mtn_open"), f"{self._api.address}/pay/{token}"
        tx = self._records.transaction(record) or self._api.create(self._asked(record, mode, None, page))
        return phone.hosted_page(self._api.ctx, tx)

    async def delete(self, request: Request) -> Response:
        """Only while nobody was asked to pay."""
        record = self.find(request)
        if self._records.transaction(record) is not None:
            raise Refused(error(400, "Transaction déjà en cours"))
        self._records.save({**record, "deleted": True})
        return Response(status_code=204)

    def object(self, record: Record) -> dict[str, Any]:
        now = self._api.ctx.clock.now()
        expired = self._records.is_expired(record, now)
        return transaction_object(record, self._records.transaction(record), now, expired=expired)
