"""FeexPay v2: nineteen networks and cards, no idempotency, unsigned callbacks, payouts (docs/providers/feexpay.md)."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet_simulator.base import SimulatedProvider
from guichet_simulator.feexpay.payloads import (
    CARDS,
    NETWORKS,
    STATES,
    callback_info_text,
    callback_payload,
    check_card,
    check_payin,
    check_payout,
    echoed_fields,
    error,
    history_row,
    initiation_payload,
    network_label,
    payout_network,
    transaction_payload,
)
from guichet_simulator.http_helpers import (
    ErrorResponse,
    Refused,
    json_bytes,
    json_object,
    json_response,
    new_uuid,
)
from guichet_simulator.models import CallbackRequest, Kind, QueuedCallback, Transaction
from guichet_simulator.otp_messages import consume_code, send_code
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.store import undocumented_order
from guichet_simulator.transactions import NewTransaction

_HISTORY_LIMIT: Final = 500


class FeexPay(SimulatedProvider):
    name = "feexpay"
    not_shown: ClassVar[Mapping[str, str]] = {
        "wrong_currency": "responses have no currency",
    }
    title = "FeexPay"
    errors = {
        ResponseKind.UNAUTHORIZED: ErrorResponse(
            401, {"success": False, "code": "UNAUTHORIZED", "message": "Unauthorized", "statusCode": 401}
        ),
        ResponseKind.RATE_LIMITED: error(429, "Too many requests", "RATE_LIMIT_EXCEEDED", retry_after="2"),
        ResponseKind.UNAVAILABLE: error(503, "Network under maintenance", "NETWORK_UNAVAILABLE"),
        ResponseKind.NOT_CONFIGURED: error(404, "MTN channel not configured"),
        ("credit", ResponseKind.NOT_CONFIGURED): error(403, "Payout not enabled", "ERR_PAYOUT_NOT_ENABLED"),
        ResponseKind.DUPLICATE: error(400, "Duplicate transaction", "ERR_DUPLICATE_TRANSACTION"),
        ResponseKind.REFUSED: error(400, "Invalid phone number", "ERR_INVALID_PHONE_NUMBER"),
        ("credit", ResponseKind.FLOAT_EMPTY): error(400, "Insufficient balance", "ERR_INSUFFICIENT_BALANCE"),
        ("credit", ResponseKind.AMBIGUOUS): error(
            400, "LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED", "ERR_TRANSACTION_FAILED"
        ),
        ResponseKind.SERVER_ERROR: error(500, "Internal server error"),
    }

    def routes(self) -> list[BaseRoute]:
        public, payouts = "/api/transactions/public", "/api/payouts"
        return [
            self.route(f"{public}/requesttopay/{{segment}}", self.payin, "POST"),
            self.route(f"{public}/single/status/{{reference}}", partial(self._status, kind="debit")),
            self.route(f"{public}/initcard", self.card, "POST"),
            self.route(f"{payouts}/status/public/{{reference}}", partial(self._status, kind="credit")),
            self.route(f"{payouts}/public/transfer/global", self.payout, "POST"),
            self.route(f"{payouts}/public/{{segment}}", self.payout, "POST"),
            self.route("/api/transactions/history", self.history, "POST"),
            self.route("/api/balance/public/getByShop/{shop}", self.balance),
            self.route("/api/shop/{shop}/get_shop", self.shop),
            Route("/pay/{token}", self.hosted_page),
        ]

    async def payin(self, request: Request) -> Response:
        segment = request.path_params["segment"]
        network = NETWORKS.get(segment)
        if network is None:
            raise Refused(error(404, f"{segment} channel not configured"))
        body = await json_object(request)
        check_payin(network, body)
        phone, code = str(body["phoneNumber"]), body.get("otp")
        if network.sends_code and not code:
            send_code(self.ctx, self.name, phone, body["amount"])
            return json_response({"status": "PENDING", "message": "OTP envoye au client", "amount": body["amount"]})
        if code and not consume_code(self.ctx, self.name, phone, str(code)):
            raise Refused(error(400, "OTP incorrect ou expire", "ERR_TRANSACTION_FAILED"))
        scenario, ref = self.choose_scenario("debit", phone, preauthorised=bool(code)), new_uuid()
        new = NewTransaction(
            "debit",
            scenario,
            operator=segment,
            ref=network.reference(self.ctx.clock.now(), ref),
            client_ref=callback_info_text(body.get("callback_info")),
            phone=phone,
            amount=body["amount"] * 100,
            currency=network.currency,
            detail={
                "body": echoed_fields(body),
                "page_url": f"{self.address}/pay/{ref}" if network.redirects and not code else None,
                "success_url": body.get("return_url"),
                "cancel_url": body.get("cancel_url") or body.get("return_url"),
            },
        )
        is_final = scenario.response is ResponseKind.FINAL
        return await self.take(new, lambda tx: json_response(initiation_payload(tx, final=is_final)))

    async def card(self, request: Request) -> Response:
        body = await json_object(request)
        check_card(body)
        ref = new_uuid()
        page = f"{self.address}/pay/{ref}"
        new = NewTransaction(
            "debit",
            self.choose_scenario("debit", str(body["amount"])),
            operator=body["type_card"],
            ref=ref,
            client_ref=callback_info_text(body.get("callback_info")),
            amount=body["amount"] * 100,
            detail={
                "body": echoed_fields(body),
                "digits": str(body["amount"]),
                "page_url": page,
                "success_url": body.get("success_redirect_url"),
                "cancel_url": body.get("error_redirect_url") or body.get("success_redirect_url"),
            },
        )
        payload = {"reference": ref, "status": "PENDING", "url": page, "message": "Accepted"}
        return await self.take(new, lambda _: json_response(payload))

    async def payout(self, request: Request) -> Response:
        body = await json_object(request)
        channel = payout_network(request.path_params.get("segment"), body.get("network"))
        if channel is None:
            raise Refused(error(404, "payout channel not configured"))
        operator, network = channel
        check_payout(network, body)
        phone = str(body["phoneNumber"])
        new = NewTransaction(
            "credit",
            self.choose_scenario("credit", phone),
            operator=operator,
            ref=new_uuid(),
            client_ref=callback_info_text(body.get("callback_info")),
            phone=phone,
            amount=body["amount"] * 100,
            currency=network.currency,
            detail={"body": echoed_fields(body)},
        )
        payload = {
            "reference": new.ref,
            "status": "PENDING",
            "message": "Accepted",
            "callback_info": new.client_ref,
            "phone_number": phone,
            "amount": body["amount"],
            "description": body.get("motif"),
        }
        return await self.take(new, lambda _: json_response(payload))

    async def _status(self, request: Request, kind: Kind) -> Response:
        tx = self.find(kind, request.path_params["reference"])
        if tx is None:
            raise Refused(error(404, "Transaction not found", "NOT_FOUND"))
        return await self.respond_to_status(tx, transaction_payload(tx))

    async def history(self, request: Request) -> Response:
        body = await json_object(request)
        first, last = str(body.get("start_date", "")), str(body.get("end_date", ""))
        if not (first and last and body.get("shop")):
            raise Refused(error(400, ["start_date, end_date and shop should not be empty"]))
        rows = [history_row(tx) for tx in undocumented_order(self._chosen(body, first, last))]
        return await self.respond_to_status(None, {"success": True, "total": len(rows), "data": rows})

    def _chosen(self, body: dict[str, Any], first: str, last: str) -> list[Transaction]:
        """At most _HISTORY_LIMIT transactions of these days (`2026-11-22`), whichever they are if there are more."""
        everything = (None, "", "ALL")
        kinds = {"PAYIN": ["debit"], "PAYOUT": ["credit"]}.get(str(body.get("type", "ALL")), ["debit", "credit"])
        status, label = body.get("status"), body.get("reseau")
        states = [state for state, word in STATES.items() if status in (*everything, word)]
        networks = [name for name, network in NETWORKS.items() if label in (*everything, network.label)]
        operators = [*networks, *(CARDS if label in everything else [label])]
        return self.select(
            "id IN (SELECT id FROM transactions WHERE provider = 'feexpay' AND kind IN (SELECT value FROM json_each(?))"
            " AND state IN (SELECT value FROM json_each(?)) AND operator IN (SELECT value FROM json_each(?))"
            " AND created_at >= 1000000 * strftime('%s', ?) AND created_at < 1000000 * strftime('%s', ?, '+1 day')"
            " ORDER BY id * 7919 % 10007 LIMIT ?)",
            json.dumps(kinds),
            json.dumps(states),
            json.dumps(operators),
            first,
            last,
            _HISTORY_LIMIT,
        )

    async def balance(self, request: Request) -> Response:
        balances = {network.label: 0 for network in NETWORKS.values()}
        filled = not self.dashboard.float_empty
        for tx in self.select("state = 'succeeded'"):
            if (label := network_label(tx)) in balances and filled:
                balances[label] += tx.amount // 100 * (1 if tx.kind == "debit" else -1)
        return json_response({"success": True, "data": {"data": {"balances": balances}}})

    async def shop(self, request: Request) -> Response:
        return json_response({"id": request.path_params["shop"], "name": "Boutique simulateur"})

    def callback(self, tx: Transaction, queued: QueuedCallback, url: str) -> CallbackRequest | None:
        """To the shop's only URL. Callbacks are not signed, so a forged one looks like a true one."""
        if queued.claim not in STATES:
            return None
        return CallbackRequest(url, json_bytes(callback_payload(tx, STATES[queued.claim], self.ctx.clock.now())))
