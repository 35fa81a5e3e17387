"""FeexPay v2: nineteen networks and cards, no idempotency, unsigned webhooks, refunds as payouts.

Source: docs/providers/feexpay.md.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.clock import iso
from guichet_simulator.base import Family, Fault, credential, json_answer, json_bytes, json_object, new_uuid
from guichet_simulator.context import Notification
from guichet_simulator.feexpay_networks import NETWORKS, Network
from guichet_simulator.feexpay_payloads import STATES, echo, history_row, kept, label, shown, taken
from guichet_simulator.messages import code_is_good, send_code
from guichet_simulator.scenarios import Answer
from guichet_simulator.store import Kind, QueuedCallback, Transaction

MIN_PAYIN: Final = 100
MAX_PAYIN: Final = 2_000_000
_PLAIN_TEXT: Final = re.compile(r"[A-Za-z0-9 ]*")
_HISTORY_LIMIT: Final = 500


def _error(status: int, message: object, code: str | None = None) -> Response:
    return json_answer({"statusCode": status, "message": message} | ({"code": code} if code else {}), status)


def _fault(status: int, message: str, code: str | None = None, retry_after: str | None = None) -> Fault:
    body = {"statusCode": status, "message": message} | ({"code": code} if code else {})
    return Fault(status, body, {"Retry-After": retry_after} if retry_after else {})


class FeexPay(Family):
    name = "feexpay"
    title = "FeexPay"
    faults = {
        Answer.UNAUTHORIZED: Fault(
            401, {"success": False, "code": "UNAUTHORIZED", "message": "Unauthorized", "statusCode": 401}
        ),
        Answer.RATE_LIMITED: _fault(429, "Too many requests", "RATE_LIMIT_EXCEEDED", "2"),
        Answer.UNAVAILABLE: _fault(503, "Network under maintenance", "NETWORK_UNAVAILABLE"),
        Answer.NOT_CONFIGURED: _fault(404, "MTN channel not configured"),
        ("credit", Answer.NOT_CONFIGURED): _fault(403, "Payout not enabled", "ERR_PAYOUT_NOT_ENABLED"),
        Answer.DUPLICATE: _fault(400, "Duplicate transaction", "ERR_DUPLICATE_TRANSACTION"),
        Answer.REFUSED: _fault(400, "Invalid phone number", "ERR_INVALID_PHONE_NUMBER"),
        ("credit", Answer.REFUSED): _fault(400, "Insufficient balance", "ERR_INSUFFICIENT_BALANCE"),
        Answer.BROKEN: _fault(500, "Internal server error"),
    }

    def routes(self) -> list[BaseRoute]:
        public = "/api/transactions/public"
        payouts = "/api/payouts"
        return [
            Route(f"{public}/requesttopay/{{segment}}", self.payin, methods=["POST"]),
            Route(f"{public}/single/status/{{reference}}", self.payin_status),
            Route(f"{public}/initcard", self.card, methods=["POST"]),
            Route(f"{payouts}/status/public/{{reference}}", self.payout_status),
            Route(f"{payouts}/public/transfer/global", self.payout, methods=["POST"]),
            Route(f"{payouts}/public/{{segment}}", self.payout, methods=["POST"]),
            Route("/api/transactions/history", self.history, methods=["POST"]),
            Route("/api/balance/public/getByShop/{shop}", self.balance),
            Route("/api/shop/{shop}/get_shop", self.shop),
            Route("/pay/{token}", self.hosted_page),
        ]

    # Payin

    async def payin(self, request: Request) -> Response:
        if credential(request) is None:
            return self.fault(Answer.UNAUTHORIZED)
        segment = request.path_params["segment"]
        network = NETWORKS.get(segment)
        if network is None:
            return _error(404, f"{segment} channel not configured")
        body = await json_object(request) or {}
        if refusal := _payin_faults(network, body):
            return refusal
        phone = str(body["phoneNumber"])
        code = body.get("otp")
        if network.sends_code and not code:
            send_code(self.desk, self.name, phone, body["amount"])
            return json_answer({"status": "PENDING", "message": "OTP envoye au client", "amount": body["amount"]})
        if code and not code_is_good(self.desk, self.name, phone, str(code)):
            return _error(400, "OTP incorrect ou expire", "ERR_TRANSACTION_FAILED")
        scenario = self.desk.choose(self.name, "debit", phone, agreed=bool(code))

        def take() -> Response:
            ref = new_uuid()
            page = f"{self.address}/pay/{ref}" if network.redirects and not code else None
            tx = self.desk.take(
                self.name,
                "debit",
                scenario,
                operator=segment,
                ref=network.reference(self.desk.clock.now(), ref),
                client_ref=echo(body.get("callback_info")),
                phone=phone,
                amount=body["amount"] * 100,
                currency=network.currency,
                lifetime=self.lifetime,
                detail={
                    "body": kept(body),
                    "page_url": page,
                    "success_url": body.get("return_url"),
                    "cancel_url": body.get("cancel_url") or body.get("return_url"),
                },
            )
            return json_answer(taken(tx, final=scenario.answer is Answer.FINAL))

        return await self.respond("debit", scenario, take)

    async def payin_status(self, request: Request) -> Response:
        return await self._status(request, "debit")

    async def payout_status(self, request: Request) -> Response:
        return await self._status(request, "credit")

    async def _status(self, request: Request, kind: Kind) -> Response:
        if credential(request) is None:
            return self.fault(Answer.UNAUTHORIZED)
        tx = self.desk.find(self.name, kind, request.path_params["reference"])
        if tx is None:
            return _error(404, "Transaction not found", "NOT_FOUND")
        return await self.question(tx, lambda: json_answer(shown(tx)))

    # Cards

    async def card(self, request: Request) -> Response:
        if credential(request) is None:
            return self.fault(Answer.UNAUTHORIZED)
        body = await json_object(request) or {}
        missing = [name for name in ("shop", "phone", "first_name", "last_name", "email") if not body.get(name)]
        if (
            missing
            or body.get("type_card") not in ("VISA", "MASTERCARD")
            or not _amount_ok(body.get("amount"), MIN_PAYIN)
        ):
            return _error(
                400, [f"{name} should not be empty" for name in missing] or ["type_card or amount is invalid"]
            )
        scenario = self.desk.choose(self.name, "debit", str(body["amount"]))

        def take() -> Response:
            ref = new_uuid()
            page = f"{self.address}/pay/{ref}"
            tx = self.desk.take(
                self.name,
                "debit",
                scenario,
                operator=body["type_card"],
                ref=ref,
                client_ref=echo(body.get("callback_info")),
                amount=body["amount"] * 100,
                currency="XOF",
                lifetime=self.lifetime,
                detail={
                    "body": kept(body),
                    "digits": str(body["amount"]),
                    "page_url": page,
                    "success_url": body.get("success_redirect_url"),
                    "cancel_url": body.get("error_redirect_url") or body.get("success_redirect_url"),
                },
            )
            return json_answer({"reference": tx.ref, "status": "PENDING", "url": page, "message": "Accepted"})

        return await self.respond("debit", scenario, take)

    # Payout

    async def payout(self, request: Request) -> Response:
        if credential(request) is None:
            return self.fault(Answer.UNAUTHORIZED)
        body = await json_object(request) or {}
        found = _payout_network(request.path_params.get("segment"), body.get("network"))
        if found is None:
            return _error(404, "payout channel not configured")
        segment, network = found
        if refusal := _payout_faults(network, body):
            return refusal
        phone = str(body["phoneNumber"])
        scenario = self.desk.choose(self.name, "credit", phone)

        def take() -> Response:
            tx = self.desk.take(
                self.name,
                "credit",
                scenario,
                operator=segment,
                ref=new_uuid(),
                client_ref=echo(body.get("callback_info")),
                phone=phone,
                amount=body["amount"] * 100,
                currency=network.currency,
                lifetime=self.lifetime,
                detail={"body": kept(body)},
            )
            more = {"phone_number": phone, "amount": body["amount"], "description": body.get("motif")}
            known = {"reference": tx.ref, "status": "PENDING", "message": "Accepted", "callback_info": tx.client_ref}
            return json_answer(known | more)

        return await self.respond("credit", scenario, take)

    # History and probes

    async def history(self, request: Request) -> Response:
        if credential(request) is None:
            return self.fault(Answer.UNAUTHORIZED)
        body = await json_object(request) or {}
        first, last = str(body.get("start_date", "")), str(body.get("end_date", ""))
        if not (first and last and body.get("shop")):
            return _error(400, ["start_date, end_date and shop should not be empty"])
        self.desk.let_time_pass()
        kinds = {"PAYIN": "('debit')", "PAYOUT": "('credit')"}.get(str(body.get("type", "ALL")), "('debit', 'credit')")
        wanted = [
            tx
            for tx in self.desk.store.select(f"family = 'feexpay' AND kind IN {kinds}")
            if first <= iso(tx.created_at)[:10] <= last
            and body.get("status") in (None, "", "ALL", STATES[tx.state])
            and body.get("reseau") in (None, "", "ALL", label(tx))
        ][:_HISTORY_LIMIT]

        def usual() -> Response:
            return json_answer({"success": True, "total": len(wanted), "data": [history_row(tx) for tx in wanted]})

        return await self.respond("status", self.desk.forced_for(self.name, "status"), usual)

    async def balance(self, request: Request) -> Response:
        if credential(request) is None:
            return self.fault(Answer.UNAUTHORIZED)
        balances = {network.label: 0 for network in NETWORKS.values()}
        for tx in self.desk.store.select("family = 'feexpay' AND state = 'succeeded'"):
            if label(tx) in balances:
                balances[label(tx)] += tx.amount // 100 * (1 if tx.kind == "debit" else -1)
        return json_answer({"success": True, "data": {"data": {"balances": balances}}})

    async def shop(self, request: Request) -> Response:
        if credential(request) is None:
            return self.fault(Answer.UNAUTHORIZED)
        return json_answer({"id": request.path_params["shop"], "name": "Boutique simulateur"})

    def notification(self, tx: Transaction, queued: QueuedCallback) -> Notification | None:
        """Unsigned, to the shop's one URL: a forged one looks exactly like a true one."""
        url = self.desk.dashboard(self.name).callback_url
        if url is None or queued.claim not in STATES:
            return None
        stated = shown(tx, STATES[queued.claim])
        body = {
            "reference": tx.ref,
            "order_id": tx.ref,
            "status": stated["status"],
            "amount": stated.get("amount"),
            "callback_info": tx.client_ref,
            "type": "Paiement" if tx.kind == "debit" else "Payout",
            "reseau": label(tx),
            "phoneNumber": tx.phone,
            "date": iso(self.desk.clock.now()),
            "description": stated["description"],
            "reason": stated["reason"],
            "ref_operator": stated["operator_id"],
        } | {name: tx.detail["body"].get(name, "") for name in ("first_name", "last_name", "email")}
        return Notification(url, json_bytes(body))


def _payin_faults(network: Network, body: Mapping[str, Any]) -> Response | None:
    """The first thing wrong with a payin, in the order the gateway looks."""
    required = {"shop", "amount", "phoneNumber"}
    required |= {"otp"} if network.needs_code else set()
    required |= {"return_url"} if network.needs_return_url else set()
    if empty := [f"{name} should not be empty" for name in sorted(required) if not body.get(name)]:
        return _error(400, empty)
    if not _amount_ok(body["amount"], MIN_PAYIN) or body["amount"] > MAX_PAYIN:
        return _error(400, f"amount must be between {MIN_PAYIN} and {MAX_PAYIN}", "ERR_INVALID_AMOUNT")
    phone = str(body["phoneNumber"])
    if not phone.isdigit():
        return _error(400, "phoneNumber must contain digits only", "ERR_INVALID_PHONE_NUMBER")
    if not phone.startswith(network.dial):
        return _error(405, "mauvais reseau")
    if not _PLAIN_TEXT.fullmatch(str(body.get("description") or "")):
        return _error(400, ["description must contain letters, digits and spaces only"])
    return None


def _payout_network(segment: str | None, label: object) -> tuple[str, Network] | None:
    """The network a payout call means; some paths serve several, told apart by `network`."""
    for code, network in NETWORKS.items():
        if network.payout_path == segment and network.payout_label in (None, label):
            return code, network
    return None


def _payout_faults(network: Network, body: Mapping[str, Any]) -> Response | None:
    empty = [f"{name} should not be empty" for name in ("shop", "amount", "phoneNumber", "motif") if not body.get(name)]
    if empty:
        return _error(400, empty)
    if not _amount_ok(body["amount"], network.min_payout):
        return _error(400, f"amount must be at least {network.min_payout}", "ERR_INVALID_AMOUNT")
    motif = str(body["motif"])
    if len(motif) > 30 or not _PLAIN_TEXT.fullmatch(motif):
        return _error(400, ["motif must be 30 letters, digits and spaces at most"])
    if not str(body["phoneNumber"]).startswith(network.dial):
        return _error(400, "Invalid phone number", "ERR_INVALID_PHONE_NUMBER")
    return None


def _amount_ok(amount: object, least: int) -> bool:
    return isinstance(amount, int) and not isinstance(amount, bool) and amount >= least
