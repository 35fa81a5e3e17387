"""Coris Money: parameters in the query, hashed headers, a code by SMS, final responses (docs/providers/coris.md)."""

import hashlib
import hmac
from collections.abc import Mapping
from typing import ClassVar, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import (
    ErrorResponse,
    Refused,
    acceptable,
    hundredths,
    json_response,
    new_uuid,
    units,
)
from guichet_simulator.models import EXPIRED, FAILED, SUCCEEDED, Transaction
from guichet_simulator.otp_messages import consume_code, send_code
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.transactions import NewTransaction

COUNTRIES: Final = {"229": "BJ", "226": "BF", "225": "CI", "228": "TG"}
_REASONS: Final[Mapping[str | None, str]] = {
    "insufficient_funds": "Solde insuffisant",
    "payer_not_found": "Client inexistant",
    "rejected_by_payer": "Operation refusee",
    "expired": "OTP expire",
}


def _error(code: str, message: str) -> ErrorResponse:
    """An error as a 200, which is how Coris states most of them."""
    return ErrorResponse(200, {"code": code, "message": message, "msg": message})


class Coris(SimulatedProvider):
    name = "coris"
    signing_key = "coris-simulator"
    not_shown: ClassVar[Mapping[str, str]] = {
        "wrong_currency": "responses have no currency",
        "never_final": "every response is final",
        "pending_long": "every response is final",
        "succeeds_late": "every response is final",
        "forged_callback": "no callbacks",
        "duplicate_callback": "no callbacks",
        "late_callback": "no callbacks",
    }
    title = "Coris Money"
    lifetime = 300
    retries = ()
    errors = {
        ResponseKind.UNAUTHORIZED: ErrorResponse(401, {"code": "-1", "message": "Client non autorise"}),
        ResponseKind.RATE_LIMITED: ErrorResponse(
            429, {"code": "1", "message": "Trop de requetes"}, {"Retry-After": "2"}
        ),
        ResponseKind.UNAVAILABLE: ErrorResponse(503, {"code": "1", "message": "Service indisponible"}),
        ResponseKind.NOT_CONFIGURED: _error("-1", "Service non autorise"),
        ResponseKind.DUPLICATE: _error("-1", "OTP Incorrect"),
        ResponseKind.REFUSED: _error("-1", "Client inexistant"),
        ResponseKind.SERVER_ERROR: ErrorResponse(500, {"code": "1", "message": "Erreur interne"}),
    }

    def routes(self) -> list[BaseRoute]:
        api = [
            Route("/infos-client", self.customer),
            Route("/send-code-otp", self.send_code, methods=["POST"]),
            Route("/operations/paiement-bien", self.pay, methods=["POST"]),
            Route("/operations/transaction-status", self.status),
        ]
        return [Mount("/external/v1/api", routes=api)]

    def _parameters(self, request: Request, *names: str) -> tuple[str, ...]:
        """The values of these parameters. Raises Refused when one is missing or the hash is wrong."""
        values = tuple(request.query_params.get(name, "") for name in names)
        if not acceptable(request.headers.get("clientid")):
            raise Refused(self.error(ResponseKind.UNAUTHORIZED))
        secret = self.dashboard.secret or ""
        expected = hashlib.sha256("".join((*values, secret)).encode()).hexdigest()
        if not hmac.compare_digest(expected, request.headers.get("hashparam", "").lower()):
            raise Refused(_error("-1", "Hash incorrect"))
        if not all(values):
            raise Refused(_error("-1", "Parametre manquant"))
        return values

    async def customer(self, request: Request) -> Response:
        country, number = self._parameters(request, "codePays", "telephone")
        if country not in COUNTRIES or number.endswith("9006"):
            return self.error(ResponseKind.REFUSED)
        return json_response({"code": "0", "text": f"<client><telephone>{number}</telephone></client>"})

    async def send_code(self, request: Request) -> Response:
        country, number = self._parameters(request, "codePays", "telephone")
        if country not in COUNTRIES or not number.isdigit():
            return self.error(ResponseKind.REFUSED)

        def normal() -> Response:
            send_code(self.ctx, self.name, country + number)
            return json_response({"text": "Le code OTP a ete envoye par SMS"})

        return await self.respond_without_money(normal)

    async def pay(self, request: Request) -> Response:
        """Final at once. A code works once, so a repeat is refused and says nothing about the first request."""
        country, number, _, text, code = self._parameters(
            request, "codePays", "telephone", "codePv", "montant", "codeOTP"
        )
        amount, phone = hundredths(text, "XOF"), country + number
        if country not in COUNTRIES or not number.isdigit() or amount is None:
            return self.error(ResponseKind.REFUSED)
        if not consume_code(self.ctx, self.name, phone, code):
            raise Refused(_error("-1", "OTP Incorrect"))
        scenario = self.choose_scenario("debit", phone, preauthorised=True)
        ref = new_uuid().replace("-", "")[:16].upper()

        def decided(tx: Transaction) -> Response:
            refused = scenario.final_state in (FAILED, EXPIRED)
            self.ctx.decide(tx, FAILED if refused else SUCCEEDED, scenario.reason)
            return json_response(_payment_payload(self.ctx.store.get(tx.id)))

        return await self.take(NewTransaction("debit", scenario, "coris", ref, amount, phone=phone), decided)

    async def status(self, request: Request) -> Response:
        [operation] = self._parameters(request, "codeOperation")
        tx = self.find("debit", operation)
        if tx is None:
            raise Refused(_error("-1", "Operation inexistante"))
        return await self.respond_to_status(tx, _payment_payload(tx))


def _payment_payload(tx: Transaction) -> dict[str, str]:
    if tx.state != SUCCEEDED:
        message = _REASONS.get(tx.reason, "Operation refusee")
        return {"code": "-1", "message": message, "msg": message}
    payload = {"code": "0", "message": "Paiement effectue avec succes", "transactionId": tx.ref}
    return payload | ({"montant": str(units(tx.stated_amount))} if tx.stated_amount is not None else {})
