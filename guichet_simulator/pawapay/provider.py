"""pawaPay Merchant API v2: deposits, refunds and payouts under the client's ids, signed callbacks.

Source: docs/providers/pawapay.md.
"""

from collections.abc import Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.clock import iso, whole_second
from guichet.domain import money
from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import (
    ErrorResponse,
    Refused,
    credential,
    hundredths,
    json_bytes,
    json_object,
    json_response,
)
from guichet_simulator.models import PENDING, SUCCEEDED, CallbackRequest, Kind, QueuedCallback, Transaction
from guichet_simulator.otp_messages import BAD_CODE
from guichet_simulator.pawapay import toolkit
from guichet_simulator.pawapay.payloads import (
    CREDITS,
    PROVIDERS,
    Provider,
    business_error,
    check_input,
    confirmation_error,
    failure,
    rejected,
    sandbox_scenario,
    transaction_payload,
)
from guichet_simulator.scenarios import BY_NAME, ResponseKind, Scenario
from guichet_simulator.transactions import NewTransaction

if TYPE_CHECKING:
    from guichet_simulator.pawapay.signatures import HttpSigner

#: Seconds until a provider with a page has given its address.
PAGE_AFTER: Final = 0.5


class PawaPay(SimulatedProvider):
    name = "pawapay"
    title = "pawaPay"
    lifetime = 900
    retries = (5, 30, 120, 600)
    errors = {
        ResponseKind.UNAUTHORIZED: rejected("AUTHENTICATION_ERROR", 403),
        ("status", ResponseKind.UNAUTHORIZED): ErrorResponse(403, failure("AUTHENTICATION_ERROR")),
        ResponseKind.RATE_LIMITED: ErrorResponse(429, failure("RATE_LIMITED"), {"Retry-After": "2"}),
        ResponseKind.UNAVAILABLE: ErrorResponse(503, failure("UNKNOWN_ERROR")),
        ResponseKind.NOT_CONFIGURED: rejected("DEPOSITS_NOT_ALLOWED", 403),
        ("credit", ResponseKind.NOT_CONFIGURED): rejected("REFUNDS_NOT_ALLOWED", 403),
        ResponseKind.DUPLICATE: ErrorResponse(200, {"status": "DUPLICATE_IGNORED"}),
        ResponseKind.REFUSED: rejected("INVALID_PHONE_NUMBER"),
        ("credit", ResponseKind.REFUSED): rejected("RECIPIENT_NOT_FOUND"),
        ("credit", ResponseKind.FLOAT_EMPTY): rejected("PAWAPAY_WALLET_OUT_OF_FUNDS"),
        ResponseKind.SERVER_ERROR: ErrorResponse(500, failure("UNKNOWN_ERROR")),
    }

    @cached_property
    def _signer(self) -> "HttpSigner":
        """Made when it is first needed, as what it imports."""
        from guichet_simulator.pawapay.signatures import HttpSigner  # noqa: PLC0415

        return HttpSigner(self.ctx.store)

    def routes(self) -> list[BaseRoute]:
        def other(path: str, endpoint: toolkit.Endpoint, method: str = "GET") -> Route:
            return self.route(path, partial(endpoint, self), method)

        return [
            Route("/v2/deposits", self.deposit, methods=["POST"]),
            Route("/v2/refunds", self.refund, methods=["POST"]),
            Route("/v2/payouts", self.payout, methods=["POST"]),
            other("/v2/active-conf", toolkit.active_conf),
            other("/v2/availability", toolkit.availability),
            other("/v2/wallet-balances", toolkit.balances),
            Route("/v2/public-key/http", self.public_key),
            other("/v2/statements", toolkit.create_statement, "POST"),
            other("/v2/statements/{id}", toolkit.read_statement),
            Route("/statements/{id}.csv", partial(toolkit.download_statement, self)),
            self.route("/v2/{resource}/{id}", self.read),
            Route("/pay/{id}", self.hosted_page),
        ]

    async def check_access(self, request: Request) -> None:
        self._check_credential(request, "status")

    def _check_credential(self, request: Request, call: str, echo: Mapping[str, object] | None = None) -> None:
        if "authorization" not in request.headers:
            status = {} if call == "status" else {"status": "REJECTED"}
            raise Refused(ErrorResponse(401, {**status, **failure("NO_AUTHENTICATION")}), echo)
        if credential(request) is None:
            raise Refused(self.error(ResponseKind.UNAUTHORIZED, call, echo))

    # Calls that move money

    async def _read_body(
        self, request: Request, call: Kind, *, id_field: str, party_field: str | None
    ) -> dict[str, Any]:
        """The body. Raises Refused when the credential or the signature is refused, or a field is invalid."""
        body = await json_object(request)
        echo = {id_field: body.get(id_field)}
        self._check_credential(request, call, echo)
        keys, raw = self.dashboard.request_keys, await request.body()
        if keys is not None:
            from guichet_simulator.pawapay.signatures import is_signed  # noqa: PLC0415 - see `_signer`

            if not is_signed(request, raw, keys=keys, now=self.ctx.clock.now()):
                raise Refused(rejected("HTTP_SIGNATURE_ERROR", 403), echo)
        check_input(body, id_field, party_field)
        return body

    async def deposit(self, request: Request) -> Response:
        body = await self._read_body(request, "debit", id_field="depositId", party_field="payer")
        echo, party = {"depositId": body["depositId"]}, body["payer"]["accountDetails"]
        if code := business_error(body, party):
            raise Refused(rejected(code), echo)
        if self.dashboard.availability.get(party["provider"]) == "CLOSED":
            raise Refused(rejected("PROVIDER_TEMPORARILY_UNAVAILABLE"), echo)
        provider, phone = PROVIDERS[party["provider"]], str(party["phoneNumber"])
        if invalid := confirmation_error(provider, body):
            raise Refused(invalid, echo)
        if self.find("debit", body["depositId"], "deposit"):
            return self.error(ResponseKind.DUPLICATE, "debit", echo)
        scenario = self._choose_scenario("debit", provider, phone, preauthorised=provider.auth == "PREAUTH")
        if body.get("preAuthorisationCode") == BAD_CODE:
            scenario = BY_NAME["rejected"]
        page = f"{self.address}/pay/{body['depositId']}" if provider.auth == "REDIRECT_AUTH" else None
        detail = {"page_url": page, "success_url": body.get("successfulUrl"), "cancel_url": body.get("failedUrl")}

        new = _new("deposit", scenario, body, detail, provider=party["provider"], phone=phone)

        def accepted(tx: Transaction) -> Response:
            if page:
                self.ctx.queue_callback(tx, "processing", after=PAGE_AFTER)
            next_step = "GET_AUTH_URL" if page else "FINAL_STATUS"
            return json_response({**_accepted(tx), "nextStep": next_step})

        return await self.take(new, accepted, echo)

    async def payout(self, request: Request) -> Response:
        body = await self._read_body(request, "credit", id_field="payoutId", party_field="recipient")
        echo, party = {"payoutId": body["payoutId"]}, body["recipient"]["accountDetails"]
        if code := business_error(body, party):
            raise Refused(rejected(code), echo)
        if self.find("credit", body["payoutId"], "payout"):
            return self.error(ResponseKind.DUPLICATE, "credit", echo)
        phone = str(party["phoneNumber"])
        scenario = self._choose_scenario("credit", PROVIDERS[party["provider"]], phone)
        new = _new("payout", scenario, body, {}, provider=party["provider"], phone=phone)
        return await self.take(new, lambda tx: json_response(_accepted(tx)), echo)

    async def refund(self, request: Request) -> Response:
        body = await self._read_body(request, "credit", id_field="refundId", party_field=None)
        echo = {"refundId": body["refundId"]}
        if self.find("credit", body["refundId"], "refund"):
            return self.error(ResponseKind.DUPLICATE, "credit", echo)
        debit = self.find("debit", str(body.get("depositId")), "deposit")
        if debit is None or debit.state != SUCCEEDED:
            raise Refused(rejected("INVALID_STATE" if debit else "NOT_FOUND"), echo)
        left = debit.amount - self.ctx.store.refunded_amount(debit)
        # Amount and currency are optional: without them everything that is left is refunded.
        body = {"amount": money.plain(left or debit.amount), "currency": debit.currency} | body
        if code := self._refund_error(debit, left, body):
            raise Refused(rejected(code), echo)
        phone = debit.phone or ""
        scenario = self._choose_scenario("credit", PROVIDERS[debit.operator], phone)
        detail = {"depositId": debit.ref}
        new = _new("refund", scenario, body, detail, provider=debit.operator, phone=phone, parent=debit.ref)
        return await self.take(new, lambda tx: json_response(_accepted(tx)), echo)

    def _refund_error(self, debit: Transaction, left: int, body: Mapping[str, Any]) -> str | None:
        """The failure code of a refund; `left` hundredths of the debit can still be refunded."""
        if left <= 0:
            running = self.select("parent = ? AND state = 'pending'", debit.ref)
            return "REFUND_IN_PROGRESS" if running else "DEPOSIT_ALREADY_REFUNDED"
        amount = hundredths(body["amount"], debit.currency)
        if amount is None:
            return "INVALID_AMOUNT"
        if body["currency"] != debit.currency:
            return "INVALID_CURRENCY"
        return "AMOUNT_TOO_LARGE" if amount > left else None

    def _choose_scenario(self, kind: Kind, provider: Provider, phone: str, *, preauthorised: bool = False) -> Scenario:
        """The numbers of pawaPay's own sandbox count where nothing else chooses a scenario."""
        chosen = self.choose_scenario(kind, phone, preauthorised=preauthorised)
        by_default = chosen.waits_for_customer or chosen.name in ("prompt", "succeeds")
        return (by_default and sandbox_scenario(provider, phone, kind)) or chosen

    # Status calls

    async def read(self, request: Request) -> Response:
        resource = request.path_params["resource"].removesuffix("s")
        tx = self.find("credit" if resource in CREDITS else "debit", request.path_params["id"], resource)
        if tx is None:
            return await self.respond_to_status(None, {"status": "NOT_FOUND"})
        data = transaction_payload(tx, self.ctx.clock.now())
        return await self.respond_to_status(tx, {"status": "FOUND", "data": data})

    async def public_key(self, request: Request) -> Response:
        return json_response([self._signer.public_key()])

    def callback(self, tx: Transaction, queued: QueuedCallback, url: str) -> CallbackRequest | None:
        """Signed: deposits with raw ECDSA, the rest with DER, because the official samples show both."""
        if queued.claim == "processing" and tx.state != PENDING:
            return None
        now = self.ctx.clock.now()
        payload = transaction_payload(tx, now, queued.claim)
        payload.pop("clientReferenceId", None)
        body = json_bytes(payload)
        headers = self._signer.sign(url, body, whole_second(now), der=tx.kind == "credit", forged=queued.forged)
        return CallbackRequest(url, body, headers)


def _accepted(tx: Transaction) -> dict[str, object]:
    return {f"{tx.resource}Id": tx.ref, "status": "ACCEPTED", "created": iso(tx.created_at)}


def _new(
    resource: str,
    scenario: Scenario,
    body: Mapping[str, Any],
    detail: Mapping[str, Any],
    *,
    provider: str,
    phone: str,
    parent: str | None = None,
) -> NewTransaction:
    amount = hundredths(body["amount"], body["currency"])
    assert amount is not None
    metadata = {name: value for pair in body.get("metadata", []) for name, value in pair.items() if name != "isPII"}
    return NewTransaction(
        "credit" if resource in CREDITS else "debit",
        scenario,
        operator=provider,
        ref=body[f"{resource}Id"],
        client_ref=body.get("clientReferenceId") or body[f"{resource}Id"],
        phone=phone,
        parent=parent,
        resource=resource,
        amount=amount,
        currency=body["currency"],
        detail={"message": body.get("customerMessage"), "metadata": metadata, **detail},
    )
