"""PayDunya: an invoice, its charge by `softpay` or on its page, its state; two modes (docs/providers/paydunya.md).

An invoice and an announced payout move nothing, so they stand among the settings; the charge of an invoice and the
submission of a payout are transactions. `POST /control/next` with `call` "token" concerns the calls that move nothing.
"""

import secrets
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from guichet.clock import DAY, SECOND, later
from guichet_simulator import phone
from guichet_simulator.base import SimulatedProvider
from guichet_simulator.context import SimulatorContext
from guichet_simulator.http_helpers import ErrorResponse, Refused, acceptable, json_object, json_response, new_uuid
from guichet_simulator.models import EXPIRED, FAILED, PENDING, CallbackRequest, QueuedCallback, Transaction
from guichet_simulator.paydunya.payloads import (
    CHANNELS,
    INVOICE_STATES,
    MASTER_KEY,
    NETWORKS,
    NO_INVOICE,
    NO_PAGE,
    PAYOUT_STATES,
    REFUSED_PAYER,
    TOO_LATE,
    UNKNOWN_INVOICE,
    WRONG_CODE,
    WRONG_FIELDS,
    Network,
    answer,
    callback_body,
    check_invoice,
    check_softpay,
    invoice_key,
    invoice_payload,
    no,
    refusal,
)
from guichet_simulator.paydunya.payouts import PayDunyaPayouts
from guichet_simulator.scenarios import WAITS, ResponseKind, Scenario
from guichet_simulator.transactions import NewTransaction

_KEYS: Final = (MASTER_KEY, "paydunya-private-key", "paydunya-token")
#: Seconds. `moov-ci` answers no later than this, whether the customer typed the PIN or not.
_MOOV_CI_WAITS: Final = 30.0
_BAD_CODE: Final = "000000"


class PayDunya(SimulatedProvider):
    name = "paydunya"
    title = "PayDunya"
    #: What nobody paid is cancelled after a day. A refused charge leaves the invoice open; here that does not last a
    #: day, so that whoever tries it sees the end.
    lifetime = DAY / SECOND
    callback_in_request = True
    second_chance = 5.0
    ends_as = EXPIRED
    not_shown: ClassVar[Mapping[str, str]] = {"wrong_currency": "responses have no currency"}
    errors = {
        ResponseKind.UNAUTHORIZED: refusal("1001", "Invalid Masterkey Specified", 401),
        ("credit", ResponseKind.UNAUTHORIZED): refusal("1001", "Initiation not authorize", 401),
        ResponseKind.RATE_LIMITED: ErrorResponse(429, {"message": "Too Many Attempts."}, {"Retry-After": "2"}),
        ResponseKind.UNAVAILABLE: ErrorResponse(
            503, answer("5000", "Service en maintenance, veuillez réessayer plus tard")
        ),
        ResponseKind.NOT_CONFIGURED: refusal("1001", "The payin is not enabled"),
        ("credit", ResponseKind.NOT_CONFIGURED): refusal("1001", "Initiation not authorize", 401),
        ResponseKind.REFUSED: no("Le compte n'existe pas"),
        ("credit", ResponseKind.REFUSED): refusal("4004", "Le compte n'existe pas"),
        ("credit", ResponseKind.FLOAT_EMPTY): refusal(
            "4002", "You don't have enough funds. Consider crediting your account"
        ),
        ("credit", ResponseKind.AMBIGUOUS): refusal("4005", "Solde insuffisant"),
        ResponseKind.SERVER_ERROR: ErrorResponse(500, {"message": "Server Error"}),
    }

    def __init__(self, ctx: SimulatorContext) -> None:
        super().__init__(ctx)
        self._payouts = PayDunyaPayouts(self)

    def routes(self) -> list[BaseRoute]:
        routes: list[BaseRoute] = []
        for mode in ("api", "sandbox-api"):
            invoices = f"/{mode}/v1/checkout-invoice"
            routes += [
                self.route(f"{invoices}/create", self.create_invoice, "POST"),
                self.route(f"{invoices}/confirm/{{token}}", self.confirm),
            ]
        payouts = "/api/v2/disburse"
        return [
            *routes,
            self.route("/api/v1/softpay/{network}", self.softpay, "POST"),
            self.route(f"{payouts}/get-invoice", self._payouts.announce, "POST"),
            self.route(f"{payouts}/submit-invoice", self._payouts.submit, "POST"),
            self.route(f"{payouts}/check-status", self._payouts.status, "POST"),
            self.route(f"{payouts}/check-balance", self._payouts.balance),
            Route("/checkout/invoice/{token}", self.page),
            Route("/sandbox-checkout/invoice/{token}", self.page),
            Route("/pay/{token}", self.hosted_page),
            # In the test mode there is no softpay either.
            Route("/{path:path}", _no_page, methods=["GET", "POST"]),
        ]

    async def check_access(self, request: Request) -> None:
        """Keys of the other mode are refused as wrong ones."""
        master, private, token = (request.headers.get(name, "") for name in _KEYS)
        if not acceptable(master):
            raise Refused(refusal("1001", "Invalid Masterkey Specified"))
        mode = _mode(request)
        if not private.startswith(f"{mode}_private_") or not acceptable(private) or not acceptable(token):
            raise Refused(refusal("1001", f"{mode.upper()} Private Key and Token combination is invalid"))

    # Invoices

    async def create_invoice(self, request: Request) -> Response:
        body = await json_object(request)
        amount, fields = check_invoice(body)
        mode = _mode(request)

        def create() -> Response:
            token = ("test_" if mode == "test" else "") + secrets.token_hex(8)
            actions = body.get("actions") if isinstance(body.get("actions"), dict) else {}
            invoice = {
                "token": token,
                "amount": amount,
                "description": fields.get("description", ""),
                "custom_data": body.get("custom_data") or {},
                "actions": actions,
                "mode": mode,
                "master_key": request.headers[MASTER_KEY],
                "company": self.dashboard.company,
                "created_at": self.ctx.clock.now(),
            }
            self.ctx.store.set_setting(invoice_key(token), invoice)
            channels = fields.get("channels") or []
            if len(channels) == 1 and channels[0] in CHANNELS:
                self._open_page(invoice, CHANNELS[channels[0]])
            page = f"{self.address}/{'sandbox-' if mode == 'test' else ''}checkout/invoice/{token}"
            return json_response(answer("00", page, description="Checkout Invoice Created", token=token))

        return await self.respond_without_money(create)

    def _invoice(self, token: object, mode: str | None = None) -> dict[str, Any] | None:
        invoice: dict[str, Any] | None = self.ctx.store.setting(invoice_key(token))
        if invoice is None or invoice["company"] != self.dashboard.company or mode not in (None, invoice["mode"]):
            return None
        return invoice

    def _charge_of(self, token: str) -> Transaction | None:
        return self.find("debit", token)

    def _open_page(self, invoice: Mapping[str, Any], operator: str = "page") -> Transaction:
        """The customer pays on the page of the invoice. The amount tells the scenario: who pays is not known yet."""
        digits = str(invoice["amount"] // 100)
        scenario = self.choose_scenario("debit", digits)
        page = f"{self.address}/checkout/invoice/{invoice['token']}"
        return self.create(_charge(invoice, scenario, operator, None, {"digits": digits, "page_url": page}))

    async def page(self, request: Request) -> Response:
        """The invoice's own page, on which it can be paid even though no call ever showed it to anybody."""
        invoice = self._invoice(request.path_params["token"])
        if invoice is None:
            return phone.page(self.ctx, "unknown.html", status=404)
        detail = {"page_url": f"{self.address}/checkout/invoice/{invoice['token']}"}
        tx = self._charge_of(invoice["token"]) or self.create(_charge(invoice, WAITS, "page", None, detail))
        return phone.hosted_page(self.ctx, tx)

    async def confirm(self, request: Request) -> Response:
        invoice = self._invoice(request.path_params["token"], _mode(request))
        if invoice is None:
            return UNKNOWN_INVOICE.response()
        tx = self._charge_of(invoice["token"])
        return await self.respond_to_status(tx, invoice_payload(invoice, tx, self._status_of(invoice, tx)))

    def _status_of(self, invoice: Mapping[str, Any], tx: Transaction | None) -> str:
        """A charge that was refused leaves the invoice pending until its day is over."""
        if tx is not None and not (tx.state == FAILED and tx.detail.get("refused_at_once")):
            return INVOICE_STATES[tx.state]
        return "cancelled" if self.ctx.clock.now() - invoice["created_at"] >= DAY else "pending"

    # Charges

    async def softpay(self, request: Request) -> Response:
        path = request.path_params["network"]
        network = NETWORKS.get(path)
        if network is None:
            return _html_404()
        body = await json_object(request)
        number, token = check_softpay(network, body)
        invoice = self._invoice(token, "live")
        if invoice is None:
            raise Refused(NO_INVOICE)
        code = self._code(network, body)
        again = self._charge_of(token)
        if again is not None and (again.state != PENDING or "last_error" not in again.detail):
            raise Refused(no("Une erreur est survenue, merci d'essayer à nouveau."))
        scenario = self.choose_scenario("debit", number, preauthorised=bool(code))
        page = f"{self.address}/pay/{token}" if network.redirects and not code else None

        def charge() -> Response:
            if again is not None:
                tx = self._charge_again(again, scenario)
            else:
                tx = self.create(_charge(invoice, scenario, network.operator, number, {"page_url": page}))
            return self._charged(tx, scenario, network, page)

        return await self.respond("debit", scenario, charge)

    def _code(self, network: Network, body: Mapping[str, Any]) -> str | None:
        """The code that the customer gave. Raises Refused for a wrong one."""
        code = body.get(network.code) if network.code else None
        if network.operator == "orange_sn":
            if body.get("api_type", "QRCODE") not in ("QRCODE", "OTPCODE"):
                raise Refused(WRONG_FIELDS)
            code = body.get("authorization_code") if body.get("api_type") == "OTPCODE" else None
            if body.get("api_type") == "OTPCODE" and not code:
                raise Refused(WRONG_FIELDS)
        if code == _BAD_CODE:
            raise Refused(WRONG_CODE)
        return None if code is None else str(code)

    def _charge_again(self, tx: Transaction, scenario: Scenario) -> Transaction:
        """After a refusal, with another number perhaps."""
        due_at = later(self.ctx.clock.now(), int(scenario.after * SECOND))
        self.ctx.store.plan_decision(tx, scenario.final_state or EXPIRED, scenario.reason, due_at)
        self.ctx.falls_due(due_at)
        return self.ctx.store.get(tx.id)

    def _charged(self, tx: Transaction, scenario: Scenario, network: Network, page: str | None) -> Response:
        final = scenario.response is ResponseKind.FINAL and (network.code or network.operator == "moov_ci")
        if final and scenario.final_state == FAILED:
            self.ctx.store.patch_detail(tx, refused_at_once=True)
            self.ctx.decide(self.ctx.store.get(tx.id), FAILED, scenario.reason, final=True)
            return REFUSED_PAYER.response()
        slow = scenario.final_state is None or scenario.waits_for_customer or scenario.after > _MOOV_CI_WAITS
        if network.operator == "moov_ci" and slow:
            return TOO_LATE.response()
        payload: dict[str, object] = {"success": True, "message": "Transaction en cours de traitement"}
        if page:
            payload["url"] = page
        if page and network.operator == "orange_sn":
            payload["other_url"] = {"om_url": f"{page}?om", "maxit_url": f"{page}?maxit"}
        if network.operator == "free_sn":
            payload["data"] = {"status": "PENDING", "amount": tx.amount // 100, "currency": "XOF"}
        return json_response(payload)

    def callback(self, tx: Transaction, queued: QueuedCallback, url: str) -> CallbackRequest | None:
        """In one of the forms that clients saw. Not signed: a forged one only lacks the digest of the master key."""
        states = INVOICE_STATES if tx.kind == "debit" else PAYOUT_STATES
        if queued.claim not in states:
            return None
        if tx.kind == "debit":
            payload = invoice_payload(self.ctx.store.setting(invoice_key(tx.ref)), tx, states[queued.claim])
        else:
            payload = self._payouts.callback_payload(tx, states[queued.claim])
        if queued.forged:
            payload["hash"] = new_uuid()
        body, content_type = callback_body(payload, tx.id)
        return CallbackRequest(url, body, {"Content-Type": content_type})


def _charge(
    invoice: Mapping[str, Any], scenario: Scenario, operator: str, number: str | None, detail: Mapping[str, Any]
) -> NewTransaction:
    actions = invoice["actions"]
    return NewTransaction(
        "debit",
        scenario,
        operator=operator,
        ref=invoice["token"],
        client_ref=str((invoice["custom_data"] or {}).get("reference") or "") or None,
        phone=number,
        amount=invoice["amount"],
        callback_url=actions.get("callback_url"),
        detail={
            "success_url": _with_token(actions.get("return_url"), invoice["token"]),
            "cancel_url": _with_token(actions.get("cancel_url"), invoice["token"]),
            **detail,
        },
    )


def _mode(request: Request) -> str:
    return "test" if "/sandbox-api/" in request.url.path else "live"


def _with_token(address: object, token: str) -> str | None:
    """PayDunya adds the token, with a second question mark if there is a query already."""
    return f"{address}?token={token}" if isinstance(address, str) and address else None


def _html_404() -> Response:
    return HTMLResponse(NO_PAGE, status_code=404)


async def _no_page(request: Request) -> Response:
    return _html_404()
