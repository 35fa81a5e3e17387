"""FedaPay's transactions: created, then paid by PIN or on its page.

Source: docs/providers/fedapay.md, "Initiating a payment".
"""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator import phone
from guichet_simulator.base import SimulatedProvider
from guichet_simulator.fedapay.payloads import (
    MIN_PAYIN,
    NOT_ALLOWED,
    PUSH_MODES,
    SANDBOX_MODE,
    check_creation,
    check_description,
    error,
    page_of,
    phone_of,
    transaction_object,
    without_currency,
)
from guichet_simulator.fedapay.records import LIFE, Record, Records
from guichet_simulator.http_helpers import Refused, credential, json_object, json_response
from guichet_simulator.scenarios import Scenario

_COUNTRIES: Final = dict(PUSH_MODES.values()) | {"bf": "226", "ml": "223"}


def countries() -> dict[str, str]:
    return dict(_COUNTRIES)


def is_sandbox(request: Request) -> bool:
    return "_sandbox_" in (credential(request) or "")


class FedaPayTransactions:
    def __init__(self, api: SimulatedProvider, records: Records) -> None:
        self._api = api
        self._ctx = api.ctx
        self._records = records

    async def create(self, request: Request) -> Response:
        body = await json_object(request) or {}
        check_description(body)
        check_creation(body, MIN_PAYIN)
        reference = body.get("merchant_reference")
        if reference and self._records.by_reference("debit", str(reference)):
            raise Refused(error(422, "Validation échouée", {"merchant_reference": ["est déjà utilisé"]}))
        names = ("amount", "description", "merchant_reference", "custom_metadata", "callback_url")
        record = self._records.add("debit", {name: body.get(name) for name in names})
        return self._response(record, request)

    async def token(self, request: Request) -> Response:
        record = self._find(request)
        token = self._records.token(record)
        return json_response({"token": token, "url": f"{self._api.address}/pay/{token}"})

    async def push(self, request: Request) -> Response:
        """Asks the customer for the PIN."""
        mode, body = request.path_params["mode"], await json_object(request) or {}
        is_open = mode == SANDBOX_MODE if is_sandbox(request) else mode in PUSH_MODES
        if not is_open:
            raise Refused(error(400, NOT_ALLOWED))
        record = self._records.by_token(body.get("token"))
        if record is None or self._records.is_expired(record, self._ctx.clock.now()):
            raise Refused(error(400, "Jeton invalide"))
        digits = phone_of(body.get("phone_number"), _COUNTRIES)
        if mode in PUSH_MODES and not digits.startswith(PUSH_MODES[mode][1]):
            raise Refused(error(400, "Numéro invalide", {"phone_number": ["est invalide"]}))
        if self._records.transaction(record) is not None:
            raise Refused(error(400, "Transaction déjà en cours"))
        scenario = self._ctx.choose_scenario(self._api.name, "debit", digits)

        def ask() -> Response:
            self._ask(record, scenario, mode, digits)
            return json_response({"v1/payment_intent": {"id": record["id"], "status": "pending"}})

        return await self._api.respond("debit", scenario, ask)

    def _ask(self, record: Record, scenario: Scenario, mode: str, digits: str | None, page: str | None = None) -> None:
        self._ctx.create_transaction(
            self._api.name,
            "debit",
            scenario,
            operator=mode,
            ref=str(record["id"]),
            client_ref=record["merchant_reference"],
            phone=digits,
            amount=record["amount"] * 100,
            currency="XOF",
            lifetime=LIFE / 1_000_000,
            detail={
                "digits": digits or str(record["amount"]),
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
            return phone.page(self._ctx, "unknown.html", status=404)
        if (tx := self._records.transaction(record)) is None:
            scenario = self._ctx.choose_scenario(self._api.name, "debit", str(record["amount"]))
            mode = request.query_params.get("mode", "mtn_open")
            self._ask(record, scenario, mode, None, f"{self._api.address}/pay/{token}")
            tx = self._records.transaction(record)
        assert tx is not None
        return phone.hosted_page(self._ctx, tx)

    async def read(self, request: Request) -> Response:
        return await self._state(self._find(request), request)

    async def read_by_reference(self, request: Request) -> Response:
        record = self._records.by_reference("debit", request.path_params["reference"])
        if record is None:
            raise Refused(error(404, "Transaction introuvable"))
        return await self._state(record, request)

    async def delete(self, request: Request) -> Response:
        """Only while nobody was asked to pay."""
        record = self._find(request)
        if self._records.transaction(record) is not None:
            raise Refused(error(400, "Transaction déjà en cours"))
        self._records.save({**record, "deleted": True})
        return Response(status_code=204)

    async def search(self, request: Request) -> Response:
        """Newest first, which is not documented."""
        records = sorted(self._records.all("debit"), key=lambda record: -record["id"])
        rows = [self._object(record, request) for record in records]
        forced = self._ctx.forced_scenario(self._api.name, "status")
        page = page_of(rows, request.query_params, "transactions")
        return await self._api.respond("status", forced, lambda: json_response(page))

    async def _state(self, record: Record, request: Request) -> Response:
        tx = self._records.transaction(record)
        if tx is None:
            return self._response(record, request)
        return await self._api.respond_to_status(tx, lambda: self._response(record, request))

    def _response(self, record: Record, request: Request) -> Response:
        return json_response({"v1/transaction": self._object(record, request)})

    def _object(self, record: Record, request: Request) -> dict[str, object]:
        now = self._ctx.clock.now()
        expired = self._records.is_expired(record, now)
        payload = transaction_object(record, self._records.transaction(record), now, expired=expired)
        return without_currency(payload, request.query_params.get("include"))

    def _find(self, request: Request) -> Record:
        record = self._records.get("debit", request.path_params["id"])
        if record is None:
            raise Refused(error(404, "Transaction introuvable"))
        return record
