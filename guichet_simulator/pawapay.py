"""pawaPay Merchant API v2: deposits, refunds and payouts under our identifiers, signed callbacks.

Source: docs/providers/pawapay.md.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.clock import SECOND, iso
from guichet.domain import money
from guichet_simulator import pawapay_toolkit
from guichet_simulator.base import Family, Fault, credential, hundredths, is_uuid, json_answer, json_bytes, json_object
from guichet_simulator.context import Desk, Notification
from guichet_simulator.messages import BAD_CODE
from guichet_simulator.pawapay_payloads import CREDITS, failure, shown, words_of
from guichet_simulator.pawapay_providers import PROVIDERS, Provider, sandbox_scenario
from guichet_simulator.scenarios import BY_NAME, Answer, Scenario
from guichet_simulator.signatures import KEY_ID, HttpSigner
from guichet_simulator.store import FAILED, PENDING, SUCCEEDED, Kind, QueuedCallback, Transaction

_AMOUNT: Final = re.compile(r"([0]|([1-9][0-9]{0,17}))([.][0-9]{0,3}[1-9])?")
_MESSAGE: Final = re.compile(r"[A-Za-z0-9 ]{4,22}")
_MOST_METADATA: Final = 10
#: Seconds until a redirecting provider has given its page.
PAGE_AFTER: Final = 0.5


def _rejected(code: str, status: int = 200) -> Fault:
    return Fault(status, {"status": "REJECTED", **failure(code)})


class PawaPay(Family):
    name = "pawapay"
    title = "pawaPay"
    lifetime = 900
    retries = (5, 30, 120, 600)
    faults = {
        Answer.UNAUTHORIZED: _rejected("AUTHENTICATION_ERROR", 403),
        ("status", Answer.UNAUTHORIZED): Fault(403, failure("AUTHENTICATION_ERROR")),
        Answer.RATE_LIMITED: Fault(429, failure("RATE_LIMITED"), {"Retry-After": "2"}),
        Answer.UNAVAILABLE: Fault(503, failure("UNKNOWN_ERROR")),
        Answer.NOT_CONFIGURED: _rejected("DEPOSITS_NOT_ALLOWED", 403),
        ("credit", Answer.NOT_CONFIGURED): _rejected("REFUNDS_NOT_ALLOWED", 403),
        Answer.DUPLICATE: Fault(200, {"status": "DUPLICATE_IGNORED"}),
        Answer.REFUSED: _rejected("INVALID_PHONE_NUMBER"),
        ("credit", Answer.REFUSED): _rejected("PAWAPAY_WALLET_OUT_OF_FUNDS"),
        Answer.BROKEN: Fault(500, failure("UNKNOWN_ERROR")),
    }

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._signer = HttpSigner(desk.store)

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/v2/deposits", self.deposit, methods=["POST"]),
            Route("/v2/refunds", self.refund, methods=["POST"]),
            Route("/v2/payouts", self.payout, methods=["POST"]),
            Route("/v2/{what}/resend-callback/{id}", self.resend, methods=["POST"]),
            Route("/v2/{what}/fail-enqueued/{id}", self.fail_enqueued, methods=["POST"]),
            Route("/v2/active-conf", self._toolkit(pawapay_toolkit.active_conf)),
            Route("/v2/availability", self._toolkit(pawapay_toolkit.availability)),
            Route("/v2/predict-provider", self._toolkit(pawapay_toolkit.predict), methods=["POST"]),
            Route("/v2/wallet-balances", self._toolkit(pawapay_toolkit.balances)),
            Route("/v2/public-key/http", self.public_key),
            Route("/v2/{what}/{id}", self.read),
            Route("/pay/{id}", self.hosted_page),
        ]

    def _refused_access(self, request: Request, call: str, echo: Mapping[str, object] | None = None) -> Response | None:
        if "authorization" not in request.headers:
            said = failure("NO_AUTHENTICATION")
            return json_answer({**(echo or {}), **({} if call == "status" else {"status": "REJECTED"}), **said}, 401)
        return self.fault(Answer.UNAUTHORIZED, call, echo) if credential(request) is None else None

    # Calls that move money

    async def deposit(self, request: Request) -> Response:
        body = await json_object(request) or {}
        echo = {"depositId": body.get("depositId")}
        if refusal := self._refused_access(request, "debit", echo) or _input_faults(body, "depositId", "payer"):
            return refusal
        party = body["payer"]["accountDetails"]
        if code := _business_faults(body, party):
            return _rejected(code).answer(echo)
        provider, phone = PROVIDERS[party["provider"]], str(party["phoneNumber"])
        if refusal := _auth_faults(provider, body):
            return refusal
        if self.desk.find(self.name, "debit", body["depositId"]):
            return self.fault(Answer.DUPLICATE, "debit", echo)
        scenario = self._scenario("debit", provider, phone, agreed=provider.auth == "PREAUTH")
        if body.get("preAuthorisationCode") == BAD_CODE:
            scenario = BY_NAME["rejected"]
        page = f"{self.address}/pay/{body['depositId']}" if provider.auth == "REDIRECT_AUTH" else None
        detail = {"page_url": page, "success_url": body.get("successfulUrl"), "cancel_url": body.get("failedUrl")}

        def take() -> Response:
            tx = self._take("debit", "deposit", scenario, body, detail, provider=party["provider"], phone=phone)
            if page:
                self.desk.queue(tx, "processing", after=PAGE_AFTER)
            step = {"nextStep": "GET_AUTH_URL" if page else "FINAL_STATUS"}
            return json_answer({**echo, "status": "ACCEPTED", "created": iso(tx.created_at), **step})

        return await self.respond("debit", scenario, take, echo)

    async def payout(self, request: Request) -> Response:
        body = await json_object(request) or {}
        echo = {"payoutId": body.get("payoutId")}
        if refusal := self._refused_access(request, "credit", echo) or _input_faults(body, "payoutId", "recipient"):
            return refusal
        party = body["recipient"]["accountDetails"]
        if code := _business_faults(body, party):
            return _rejected(code).answer(echo)
        if self.desk.find(self.name, "credit", body["payoutId"]):
            return self.fault(Answer.DUPLICATE, "credit", echo)
        phone = str(party["phoneNumber"])
        scenario = self._scenario("credit", PROVIDERS[party["provider"]], phone)

        def take() -> Response:
            tx = self._take("credit", "payout", scenario, body, {}, provider=party["provider"], phone=phone)
            return json_answer({**echo, "status": "ACCEPTED", "created": iso(tx.created_at)})

        return await self.respond("credit", scenario, take, echo)

    async def refund(self, request: Request) -> Response:
        body = await json_object(request) or {}
        echo = {"refundId": body.get("refundId")}
        if refusal := self._refused_access(request, "credit", echo) or _input_faults(body, "refundId", None):
            return refusal
        if self.desk.find(self.name, "credit", body["refundId"]):
            return self.fault(Answer.DUPLICATE, "credit", echo)
        debit = self.desk.find(self.name, "debit", str(body.get("depositId")))
        if debit is None or debit.state != SUCCEEDED:
            return _rejected("INVALID_STATE" if debit else "NOT_FOUND").answer(echo)
        left = debit.amount - self.desk.store.returned(debit)
        whole = {"amount": money.plain(left or debit.amount), "currency": debit.currency} | body
        if code := self._refund_faults(debit, left, whole):
            return _rejected(code).answer(echo)
        phone = debit.phone or ""
        scenario = self._scenario("credit", PROVIDERS[debit.operator], phone)

        def take() -> Response:
            detail = {"depositId": debit.ref}
            tx = self._take(
                "credit", "refund", scenario, whole, detail, provider=debit.operator, phone=phone, parent=debit.ref
            )
            return json_answer({**echo, "status": "ACCEPTED", "created": iso(tx.created_at)})

        return await self.respond("credit", scenario, take, echo)

    def _refund_faults(self, debit: Transaction, left: int, body: Mapping[str, Any]) -> str | None:
        if left <= 0:
            running = self.desk.store.select("family = 'pawapay' AND parent = ? AND state = 'pending'", debit.ref)
            return "REFUND_IN_PROGRESS" if running else "DEPOSIT_ALREADY_REFUNDED"
        amount = hundredths(body["amount"], debit.currency)
        if amount is None or body["currency"] != debit.currency:
            return "INVALID_AMOUNT" if amount is None else "INVALID_CURRENCY"
        return "AMOUNT_TOO_LARGE" if amount > left else None

    def _scenario(self, kind: Kind, provider: Provider, phone: str, *, agreed: bool = False) -> Scenario:
        chosen = self.desk.choose(self.name, kind, phone, agreed=agreed)
        by_default = chosen.by_hand or chosen.name in ("prompt", "succeeds")
        return (by_default and sandbox_scenario(provider, phone, kind)) or chosen

    def _take(
        self,
        kind: Kind,
        what: str,
        scenario: Scenario,
        body: Mapping[str, Any],
        detail: Mapping[str, Any],
        *,
        provider: str,
        phone: str,
        parent: str | None = None,
    ) -> Transaction:
        amount = hundredths(body["amount"], body["currency"])
        assert amount is not None
        metadata = {name: value for pair in body.get("metadata", []) for name, value in pair.items() if name != "isPII"}
        kept = {"what": what, "message": body.get("customerMessage"), "metadata": metadata}
        return self.desk.take(
            self.name,
            kind,
            scenario,
            operator=provider,
            ref=body[f"{what}Id"],
            client_ref=body.get("clientReferenceId") or body[f"{what}Id"],
            phone=phone,
            parent=parent,
            amount=amount,
            currency=body["currency"],
            lifetime=self.lifetime,
            detail={**kept, **detail},
        )

    # Questions

    def _asked(self, request: Request) -> Transaction | None:
        what = request.path_params["what"].removesuffix("s")
        kind: Kind = "credit" if what in CREDITS else "debit"
        tx = self.desk.find(self.name, kind, request.path_params["id"])
        return tx if tx and tx.detail["what"] == what else None

    async def read(self, request: Request) -> Response:
        if refusal := self._refused_access(request, "status"):
            return refusal
        tx = self._asked(request)
        if tx is None:
            forced = self.desk.forced_for(self.name, "status")
            return await self.respond("status", forced, lambda: json_answer({"status": "NOT_FOUND"}))
        now = self.desk.clock.now()
        return await self.question(tx, lambda: json_answer({"status": "FOUND", "data": shown(tx, now)}))

    async def resend(self, request: Request) -> Response:
        if refusal := self._refused_access(request, "status"):
            return refusal
        tx = self._asked(request)
        echo = {f"{request.path_params['what'].removesuffix('s')}Id": request.path_params["id"]}
        if tx is None or tx.state == PENDING:
            return _rejected("INVALID_STATE" if tx else "NOT_FOUND").answer(echo)
        self.desk.queue(tx, tx.state)
        return json_answer({**echo, "status": "ACCEPTED"})

    async def fail_enqueued(self, request: Request) -> Response:
        if refusal := self._refused_access(request, "credit"):
            return refusal
        tx = self._asked(request)
        echo = {f"{request.path_params['what'].removesuffix('s')}Id": request.path_params["id"]}
        if tx is None or words_of(tx, self.desk.clock.now()) != "ENQUEUED":
            return _rejected("INVALID_STATE" if tx else "NOT_FOUND").answer(echo)
        self.desk.decide(tx, FAILED, "cancelled_by_hand")
        return json_answer({**echo, "status": "ACCEPTED"})

    def _toolkit(self, answer: pawapay_toolkit.Call) -> Callable[[Request], Awaitable[Response]]:
        """An informative call, for those who may ask."""

        async def guarded(request: Request) -> Response:
            return self._refused_access(request, "status") or await answer(self.desk, request)

        return guarded

    async def public_key(self, request: Request) -> Response:
        return json_answer([{"id": KEY_ID, "key": self._signer.public_key()}])

    def notification(self, tx: Transaction, queued: QueuedCallback) -> Notification | None:
        """Signed, deposits with raw ECDSA and the rest with DER: both are seen in the official samples."""
        url = self.desk.dashboard(self.name).callback_url
        if url is None or (queued.claim == "processing" and tx.state != PENDING):
            return None
        now = self.desk.clock.now()
        data = shown(tx, now, queued.claim)
        data.pop("clientReferenceId", None)
        body = json_bytes(data)
        headers = self._signer.sign(url, body, now // SECOND * SECOND, der=tx.kind == "credit", forged=queued.forged)
        return Notification(url, body, headers)


def _input_faults(body: Mapping[str, Any], id_name: str, party: str | None) -> Response | None:
    """HTTP 400: what is missing or malformed."""
    echo = {id_name: body.get(id_name)}
    account = (
        (body.get(party) or {}) if party else {"type": "MMO", "accountDetails": {"phoneNumber": "", "provider": ""}}
    )
    details = account.get("accountDetails") if isinstance(account, dict) else None
    needed = {id_name: body.get(id_name)} | (
        {"amount": body.get("amount"), "currency": body.get("currency")} if party else {}
    )
    if any(value in (None, "") for value in needed.values()) or not isinstance(details, dict):
        return _rejected("MISSING_PARAMETER", 400).answer(echo)
    message, metadata = body.get("customerMessage"), body.get("metadata", [])
    right = (
        is_uuid(str(body[id_name]))
        and account.get("type") == "MMO"
        and {"phoneNumber", "provider"} <= details.keys()
        and (message is None or bool(_MESSAGE.fullmatch(str(message))))
        and isinstance(metadata, list)
        and len(metadata) <= _MOST_METADATA
    )
    return None if right else _rejected("INVALID_PARAMETER", 400).answer(echo)


def _business_faults(body: Mapping[str, Any], party: Mapping[str, Any]) -> str | None:
    """HTTP 200 and REJECTED: the failure code."""
    provider = PROVIDERS.get(str(party["provider"]))
    if provider is None:
        return "INVALID_PROVIDER"
    if body["currency"] != provider.currency:
        return "INVALID_CURRENCY"
    amount = hundredths(body["amount"], provider.currency)
    if not isinstance(body["amount"], str) or not _AMOUNT.fullmatch(body["amount"]) or amount is None:
        return "INVALID_AMOUNT"
    phone = str(party["phoneNumber"])
    if not phone.isdigit() or not phone.startswith(provider.dial):
        return "INVALID_PHONE_NUMBER"
    return "AMOUNT_OUT_OF_BOUNDS" if amount > pawapay_toolkit.MAX_AMOUNT else None


def _auth_faults(provider: Provider, body: Mapping[str, Any]) -> Response | None:
    echo = {"depositId": body["depositId"]}
    if provider.auth == "PREAUTH" and not body.get("preAuthorisationCode"):
        return _rejected("MISSING_PARAMETER", 400).answer(echo)
    if provider.auth != "REDIRECT_AUTH" and (body.get("successfulUrl") or body.get("failedUrl")):
        return _rejected("UNSUPPORTED_PARAMETER", 400).answer(echo)
    return None
