"""Coris Money: parameters in the query, hashed headers, a code by SMS, answers final at once.

Source: docs/providers/coris.md.
"""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from guichet_simulator.base import Family, Fault, acceptable, hundredths, json_answer, new_uuid, units
from guichet_simulator.messages import code_is_good, send_code
from guichet_simulator.scenarios import Answer
from guichet_simulator.store import EXPIRED, FAILED, SUCCEEDED, Transaction

COUNTRIES: Final = {"229": "BJ", "226": "BF", "225": "CI", "228": "TG"}
_REASONS: Final[Mapping[str | None, str]] = {
    "insufficient_funds": "Solde insuffisant",
    "payer_not_found": "Client inexistant",
    "rejected_by_payer": "Operation refusee",
    "expired": "OTP expire",
}


def _business(code: str, message: str) -> Fault:
    return Fault(200, {"code": code, "message": message, "msg": message})


class Coris(Family):
    name = "coris"
    title = "Coris Money"
    lifetime = 300
    retries = ()
    faults = {
        Answer.UNAUTHORIZED: Fault(401, {"code": "-1", "message": "Client non autorise"}),
        Answer.RATE_LIMITED: Fault(429, {"code": "1", "message": "Trop de requetes"}, {"Retry-After": "2"}),
        Answer.UNAVAILABLE: Fault(503, {"code": "1", "message": "Service indisponible"}),
        Answer.NOT_CONFIGURED: _business("-1", "Service non autorise"),
        Answer.DUPLICATE: _business("-1", "OTP Incorrect"),
        Answer.REFUSED: _business("-1", "Client inexistant"),
        Answer.BROKEN: Fault(500, {"code": "1", "message": "Erreur interne"}),
    }

    def routes(self) -> list[BaseRoute]:
        api = [
            Route("/infos-client", self.client),
            Route("/send-code-otp", self.send_code, methods=["POST"]),
            Route("/operations/paiement-bien", self.pay, methods=["POST"]),
            Route("/operations/transaction-status", self.status, methods=["GET", "POST"]),
            Route("/transaction-status", self.status, methods=["GET", "POST"]),
            Route("/hash256", self.hashed),
        ]
        return [Mount("/external/v1/api", routes=api)]

    def _checked(self, request: Request, *names: str) -> tuple[str, ...] | Response:
        """The parameters in this order, once they are all there and their hash is right."""
        values = tuple(request.query_params.get(name, "") for name in names)
        if not acceptable(request.headers.get("clientid")):
            return self.fault(Answer.UNAUTHORIZED)
        secret = self.desk.dashboard(self.name).secret or ""
        expected = hashlib.sha256("".join((*values, secret)).encode()).hexdigest()
        if not hmac.compare_digest(expected, request.headers.get("hashparam", "").lower()):
            return _business("-1", "Hash incorrect").answer()
        return values if all(values) else _business("-1", "Parametre manquant").answer()

    async def client(self, request: Request) -> Response:
        checked = self._checked(request, "codePays", "telephone")
        if isinstance(checked, Response):
            return checked
        country, number = checked
        if country not in COUNTRIES or number.endswith("9006"):
            return self.fault(Answer.REFUSED)
        return json_answer({"code": "0", "text": f"<client><telephone>{number}</telephone></client>"})

    async def send_code(self, request: Request) -> Response:
        checked = self._checked(request, "codePays", "telephone")
        if isinstance(checked, Response):
            return checked
        country, number = checked
        if country not in COUNTRIES or not number.isdigit():
            return self.fault(Answer.REFUSED)

        def usual() -> Response:
            send_code(self.desk, self.name, country + number)
            return json_answer({"text": "Le code OTP a ete envoye par SMS"})

        return await self.respond("token", self.desk.forced_for(self.name, "token"), usual)

    async def pay(self, request: Request) -> Response:
        """Final in the answer. The code works once: a repeat is refused, and says nothing about the first call."""
        checked = self._checked(request, "codePays", "telephone", "codePv", "montant", "codeOTP")
        if isinstance(checked, Response):
            return checked
        country, number, _, text, code = checked
        amount, phone = hundredths(text, "XOF"), country + number
        if country not in COUNTRIES or not number.isdigit() or amount is None:
            return self.fault(Answer.REFUSED)
        if not code_is_good(self.desk, self.name, phone, code):
            return _business("-1", "OTP Incorrect").answer()
        scenario = self.desk.choose(self.name, "debit", phone, agreed=True)

        def take() -> Response:
            tx = self.desk.take(
                self.name,
                "debit",
                scenario,
                operator="coris",
                ref=new_uuid().replace("-", "")[:16].upper(),
                phone=phone,
                amount=amount,
                currency="XOF",
                lifetime=self.lifetime,
            )
            refused = scenario.plan in (FAILED, EXPIRED)
            self.desk.decide(tx, FAILED if refused else SUCCEEDED, scenario.reason)
            return json_answer(_shown(self.desk.store.get(tx.id)))

        return await self.respond("debit", scenario, take)

    async def status(self, request: Request) -> Response:
        checked = self._checked(request, "codeOperation")
        if isinstance(checked, Response):
            return checked
        tx = self.desk.find(self.name, "debit", checked[0])
        if tx is None:
            return _business("-1", "Operation inexistante").answer()
        return await self.question(tx, lambda: json_answer(_shown(tx)))

    async def hashed(self, request: Request) -> Response:
        text = request.query_params.get("originalString", "")
        return Response(hashlib.sha256(text.encode()).hexdigest(), media_type="text/plain")


def _shown(tx: Transaction) -> dict[str, str]:
    if tx.state != SUCCEEDED:
        message = _REASONS.get(tx.reason, "Operation refusee")
        return {"code": "-1", "message": message, "msg": message}
    answer = {"code": "0", "message": "Paiement effectue avec succes", "transactionId": tx.ref}
    return answer | ({"montant": str(units(tx.shown_amount))} if tx.shown_amount is not None else {})
