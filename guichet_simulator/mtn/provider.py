"""MTN MoMo Open API: collection and disbursement, one identifier of the client per call (docs/providers/mtn.md)."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.domain import money
from guichet_simulator.http_helpers import (
    ErrorResponse,
    Refused,
    hundredths,
    is_uuid,
    json_bytes,
    json_object,
    json_response,
)
from guichet_simulator.models import SUCCEEDED, CallbackRequest, Kind, QueuedCallback, Transaction
from guichet_simulator.mtn.api import (
    ENVIRONMENTS,
    SANDBOX_NUMBERS,
    STATES,
    ApiUsers,
    MtnApi,
    error,
    transaction_payload,
)
from guichet_simulator.scenarios import BY_NAME, Scenario
from guichet_simulator.transactions import NewTransaction

#: What the disbursement wallet held at first, in hundredths.
_FLOAT: Final = 10_000_000_00
_MAX_TEXT: Final = 160


class _Verb(NamedTuple):
    """A call that moves money. `resource`: the references of each verb are apart from those of the others. `party`: the
    field with the customer's number; None for a refund, which names a debit instead."""

    kind: Kind
    resource: str
    party: str | None

    @property
    def product(self) -> str:
        return "collection" if self.kind == "debit" else "disbursement"


_REQUEST_TO_PAY: Final = _Verb("debit", "", "payer")
_TRANSFER: Final = _Verb("credit", "transfer", "payee")
_REFUND: Final = _Verb("credit", "refund", None)


class Mtn(MtnApi):
    """The old platform. What it took can be read here only, and not on the new one."""

    def routes(self) -> list[BaseRoute]:
        collection, disbursement = "/collection", "/disbursement"
        return [
            *ApiUsers(self).routes(),
            Route("/{product}/token/", self.token, methods=["POST"]),
            self.route(f"{collection}/v1_0/requesttopay", partial(self._move_money, verb=_REQUEST_TO_PAY), "POST"),
            self.route(f"{collection}/v1_0/requesttopay/{{ref}}", partial(self._status, verb=_REQUEST_TO_PAY)),
            self.route(f"{disbursement}/v1_0/refund", partial(self._move_money, verb=_REFUND), "POST"),
            self.route(f"{disbursement}/v2_0/refund", partial(self._move_money, verb=_REFUND), "POST"),
            self.route(f"{disbursement}/v1_0/transfer", partial(self._move_money, verb=_TRANSFER), "POST"),
            self.route(f"{disbursement}/v1_0/refund/{{ref}}", partial(self._status, verb=_REFUND)),
            self.route(f"{disbursement}/v1_0/transfer/{{ref}}", partial(self._status, verb=_TRANSFER)),
            self.route("/{product}/v1_0/account/balance", self.balance),
        ]

    # Calls that move money

    async def _move_money(self, request: Request, verb: _Verb) -> Response:
        body = await json_object(request)
        environment = request.headers["x-target-environment"]
        _check(request, body, environment)
        ref, amount = request.headers["x-reference-id"], hundredths(body["amount"], body["currency"])
        assert amount is not None
        if self.find(verb.kind, ref, verb.resource):
            raise Refused(error(409, "RESOURCE_ALREADY_EXIST"))
        parent = None
        if verb.party is None:
            debit = self._refundable_debit(body, amount, environment)
            parent, phone = debit.ref, debit.phone or ""
        else:
            holder = body.get(verb.party)
            phone = str(holder.get("partyId", "")) if isinstance(holder, dict) else ""
            if not phone.isdigit():
                return json_response({"code": "VALIDATION_ERROR", "message": "partyId is not an MSISDN"}, 400)
        echoed = {name: str(body.get(name, "")) for name in ("externalId", "payerMessage", "payeeNote")}
        new = NewTransaction(
            verb.kind,
            self._choose_scenario(verb.kind, phone),
            operator=ENVIRONMENTS[environment].operator,
            ref=ref,
            resource=verb.resource,
            client_ref=echoed["externalId"] or ref,
            phone=phone,
            amount=amount,
            currency=body["currency"],
            parent=parent,
            callback_url=request.headers.get("x-callback-url"),
            detail=echoed,
        )
        return await self.take(new, lambda _: Response(status_code=202))

    def _choose_scenario(self, kind: Kind, phone: str) -> Scenario:
        chosen = self.choose_scenario(kind, phone)
        if kind == "debit" and chosen.waits_for_customer and phone in SANDBOX_NUMBERS:
            return BY_NAME[SANDBOX_NUMBERS[phone]]
        return chosen

    def _refundable_debit(self, body: Mapping[str, Any], amount: int, environment: str) -> Transaction:
        debit = self._find_in(_REQUEST_TO_PAY, str(body.get("referenceIdToRefund", "")), environment)
        if debit is None:
            raise Refused(error(404, "RESOURCE_NOT_FOUND"))
        if debit.state != SUCCEEDED or self.ctx.store.refunded_amount(debit) + amount > debit.amount:
            raise Refused(error(500, "NOT_ALLOWED"))
        return debit

    def _find_in(self, verb: _Verb, ref: str, environment: str) -> Transaction | None:
        """What was made by this verb in this target environment."""
        tx = self.find(verb.kind, ref, verb.resource)
        return tx if tx and tx.operator == ENVIRONMENTS[environment].operator else None

    # Status calls

    async def _status(self, request: Request, verb: _Verb) -> Response:
        tx = self._find_in(verb, request.path_params["ref"], request.headers["x-target-environment"])
        if tx is None:
            unknown = error(404, "RESOURCE_NOT_FOUND")
            return await self.respond("status", self.forced_scenario("status"), unknown.response)
        return await self.respond_to_status(tx, transaction_payload(tx))

    # Balances

    async def balance(self, request: Request) -> Response:
        product = request.path_params["product"]
        environment = ENVIRONMENTS[request.headers["x-target-environment"]]
        kind = "debit" if product == "collection" else "credit"
        where = "kind = ? AND operator = ? AND state = 'succeeded'"
        moved = sum(tx.amount for tx in self.select(where, kind, environment.operator))
        total = moved if product == "collection" else self._left_to_pay_out(moved)
        return json_response({"availableBalance": money.plain(total), "currency": environment.currency})

    def _left_to_pay_out(self, paid_out: int) -> int:
        """Disbursement is a wallet of its own, filled once."""
        return 0 if self.dashboard.float_empty else max(0, _FLOAT - paid_out)

    def callback(self, tx: Transaction, queued: QueuedCallback, url: str) -> CallbackRequest | None:
        """PUT for a debit and POST for a credit: the documentation shows both, so a client must accept both."""
        if queued.claim not in STATES:
            return None
        body = json_bytes(transaction_payload(tx, STATES[queued.claim]))
        return CallbackRequest(url, body, method="PUT" if tx.kind == "debit" else "POST")


class MtnNewPlatform(Mtn):
    """The platform that replaces it (docs/providers/mtn.md, "Addresses and credentials")."""

    name = "mtn_new_platform"
    new_platform = True


def _check(request: Request, body: Mapping[str, Any], environment: str) -> None:
    """Raises Refused for the first thing that is wrong."""
    if not is_uuid(request.headers.get("x-reference-id", "")):
        raise Refused(ErrorResponse(400, {"code": "VALIDATION_ERROR", "message": "X-Reference-Id must be a UUID"}))
    if request.headers.get("x-callback-url") == "":
        raise Refused(error(500, "INVALID_CALLBACK_URL_HOST"))
    if body.get("currency") != ENVIRONMENTS[environment].currency:
        raise Refused(error(500, "INVALID_CURRENCY"))
    texts = [body.get(name, "") for name in ("payerMessage", "payeeNote")]
    texts_valid = all(isinstance(text, str) and len(text) <= _MAX_TEXT and text.isascii() for text in texts)
    amount_valid = isinstance(body.get("amount"), str) and hundredths(body["amount"], body["currency"]) is not None
    if not amount_valid or not texts_valid:
        raise Refused(ErrorResponse(400))
