"""MTN MoMo Open API: one account per country, with the products collection and disbursement (docs/providers/mtn.md).

Our reference is sent as X-Reference-Id. MTN answers 409 when it comes twice and charges once, so a request that MTN
says it never received is sent again under the same id while the customer still waits.
"""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

from guichet.clock import MINUTE, Clock
from guichet.domain.messages import Answer
from guichet.domain.money import Currency, Hundredths
from guichet.providers.base import (
    Callback,
    CallbackReference,
    Charge,
    InitiationResult,
    NotFound,
    RefundInitiationResult,
    RefundRequest,
    RefundStatusResult,
    Refused,
    StatusResult,
    Unknown,
)
from guichet.providers.capabilities import FloatBalance
from guichet.providers.mtn import checks as mtn_checks
from guichet.providers.mtn.responses import (
    balances_in,
    is_not_found,
    read_initiation,
    read_refund_initiation,
    read_refund_status,
    read_status,
)
from guichet.providers.shared.account_checks import AccountSetup, Finding
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.choices import choice
from guichet.providers.shared.client import AccessTokens, HttpProvider, ProviderClient, ProviderResponse
from guichet.providers.shared.fields import decode_json_object, plain_text, text_or_none, units
from guichet.providers.shared.listings import read_balances
from guichet.providers.shared.results import as_repeated, as_repeated_refund, probe_result

#: For each target environment the operator it serves (None: any, in MTN's sandbox) and its only currency.
_ENVIRONMENTS: Final[dict[str, tuple[str | None, str]]] = {
    "mtnbenin": ("mtn", "XOF"),
    "mtnivorycoast": ("mtn_ci", "XOF"),
    "mtncongo": ("mtn_cg", "XAF"),
    "sandbox": (None, "EUR"),
}
#: A lost request is sent again during this time; later the customer has left.
_RESEND_WITHIN: Final = 2 * MINUTE
_MAX_TEXT: Final = 60
#: The name under which the verb of a refund is stored with it.
_VERB: Final = "verb"
_OF_PRODUCT: Final = {"collection": ProviderAnswer.OF_COLLECTION, "disbursement": ProviderAnswer.OF_DISBURSEMENT}


def operators(settings: Mapping[str, str]) -> Collection[str] | None:
    operator, _ = _ENVIRONMENTS.get(settings["target_env"], (None, ""))
    return (operator,) if operator else None


class Mtn(HttpProvider):
    prompt_lasts = 5 * MINUTE
    account_settings = ("target_env", "api_user", "disbursement_api_user")

    def configure(self, settings: Mapping[str, str]) -> None:
        """Raises ValueError for a `target_env` or a `refund_via` that does not exist."""
        self._environment = choice(settings, "target_env", _ENVIRONMENTS)
        self._operator, self._currency = _ENVIRONMENTS[self._environment]
        self._refund_via = choice(settings, "refund_via", ("refund", "transfer"))
        self._collection = _Product("collection", self._http, self._clock, settings)
        self._disbursement = (
            _Product("disbursement", self._http, self._clock, settings, prefix="disbursement_")
            if settings.get("disbursement_subscription_key")
            else None
        )

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        """`refund` gives back what this account collected; `transfer` also what another account collected."""
        serves = self._operator in (None, operator)
        return serves and self._disbursement is not None and (collected_here or self._refund_via == "transfer")

    def pays_out(self, operator: str, *, collected_here: bool) -> bool:
        return self._refund_via == "transfer"

    def takes(self, operator: str, currency: Currency) -> bool:
        return self._operator in (None, operator) and currency == self._currency

    async def initiate(self, charge: Charge) -> InitiationResult:
        if unserved := self.refuse_unserved(charge, self._environment):
            return unserved
        body = {
            **self._amount_and_texts(charge.payment.reference, charge.amount, charge.payment.description),
            "payer": {"partyIdType": "MSISDN", "partyId": charge.payment.phone_number},
        }
        result = await self._collection.post(
            "requesttopay", body, reference=charge.payment.reference, notify_url=charge.notify_url
        )
        return read_initiation(result, charge.payment.reference)

    async def status(self, charge: Charge) -> StatusResult:
        result = await self._collection.get(f"requesttopay/{charge.payment.reference}")
        if not is_not_found(result):
            return read_status(result, charge.payment.reference)
        age = self._clock.now() - charge.payment.created_at
        if charge.payment.provider_reference is None and 0 <= age < _RESEND_WITHIN and not charge.ask_only:
            return as_repeated(await self.initiate(charge))
        return NotFound(result.raw)

    def prepare_refund(self, request: RefundRequest) -> Mapping[str, str]:
        """The verb. `refund` and `transfer` are separate namespaces of references: a refund that was sent by one must
        never be asked about, or sent again, by the other."""
        return {_VERB: self._refund_via}

    async def refund(self, request: RefundRequest) -> RefundInitiationResult:
        if self._disbursement is None:
            return Refused("no_refund")
        charge, verb = request.charge, self._verb(request)
        body = self._amount_and_texts(request.reference, request.amount, "Remboursement")
        payee: dict[str, object] = {"payee": {"partyIdType": "MSISDN", "partyId": request.payee_number}}
        body |= {"referenceIdToRefund": charge.payment.reference} if verb == "refund" else payee
        result = await self._disbursement.post(verb, body, reference=request.reference, notify_url=charge.notify_url)
        return read_refund_initiation(result, request.reference)

    async def refund_status(self, request: RefundRequest) -> RefundStatusResult:
        """A refund that MTN does not know is sent again: MTN pays only once under the same id."""
        if self._disbursement is None:
            return Unknown(ProviderAnswer.NO_DISBURSEMENT_KEYS())
        result = await self._disbursement.get(f"{self._verb(request)}/{request.reference}")
        if is_not_found(result) and request.provider_reference is None and not request.ask_only:
            return as_repeated_refund(await self.refund(request), request)
        return read_refund_status(result, request.reference)

    def _verb(self, request: RefundRequest) -> str:
        return request.provider_data.get(_VERB, self._refund_via)

    def _products(self) -> "list[_Product]":
        return [self._collection] + ([self._disbursement] if self._disbursement else [])

    async def probe(self) -> Answer:
        for product in self._products():
            answer = probe_result(await product.get("account/balance"))
            if answer != "ok":
                return _OF_PRODUCT[product.name](answer=answer)
        return "ok"

    async def balances(self) -> list[FloatBalance] | Unknown:
        """Refunds are paid out of `disbursement`; `collection` holds what was collected."""
        balances: list[FloatBalance] = []
        for product in self._products():
            answer = await product.get("account/balance")
            read = read_balances(answer, partial(balances_in, product=product.name))
            if isinstance(read, Unknown):
                return Unknown(_OF_PRODUCT[product.name](answer=read.raw))
            balances += read
        return balances

    def collection_wallet(self, operator: str) -> str:
        return "collection"

    def payout_wallet(self, operator: str) -> str:
        return "disbursement"

    async def check_account(self, setup: AccountSetup) -> list[Finding]:
        products = {product.name: await product.get("account/balance") for product in self._products()}
        api_user = partial(self._collection.api_user, setup)
        return await mtn_checks.check(setup, products, await self.balances(), api_user)

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        """Callbacks are not signed. `externalId` is our reference, which is also the last part of the path."""
        body = decode_json_object(callback.body)
        if body is None or "status" not in body:
            return None
        return CallbackReference(text_or_none(body.get("externalId")))

    def _amount_and_texts(self, reference: str, amount: Hundredths, description: str) -> dict[str, object]:
        text = plain_text(description, _MAX_TEXT)
        return {
            "amount": str(units(amount)),
            "currency": self._currency,
            "externalId": reference,
            "payerMessage": text,
            "payeeNote": text,
        }


class _Product:
    """Collection or disbursement: each has its own subscription key, API user and token."""

    def __init__(
        self, name: str, http: ProviderClient, clock: Clock, settings: Mapping[str, str], *, prefix: str = ""
    ) -> None:
        """`prefix` + key names the product's settings; the API user may be that of the collection."""
        self.name = name
        self._http = http
        user = settings.get(f"{prefix}api_user") or settings["api_user"]
        key = settings.get(f"{prefix}api_key") or settings["api_key"]
        self._subscription = {"Ocp-Apim-Subscription-Key": settings[f"{prefix}subscription_key"]}
        # With a request for a token, MTN's new platform requires the environment too and the old one ignores it.
        self._headers = {**self._subscription, "X-Target-Environment": settings["target_env"]}
        self._tokens = AccessTokens(http, clock, f"/{name}/token/", basic_auth=(user, key), headers=self._headers)

    async def post(
        self, path: str, body: Mapping[str, object], *, reference: str, notify_url: str | None
    ) -> ProviderResponse:
        headers = {"X-Reference-Id": reference} | ({"X-Callback-Url": notify_url} if notify_url else {})
        return await self._send("POST", path, body, headers)

    async def get(self, path: str) -> ProviderResponse:
        return await self._send("GET", path, None, {})

    async def api_user(self, setup: AccountSetup) -> ProviderResponse:
        """The API user as MTN's sandbox has it, which needs no token."""
        path = f"/v1_0/apiuser/{setup.account.settings['api_user']}"
        return await self._http.send("GET", path, headers=self._subscription)

    async def _send(
        self, method: str, path: str, body: Mapping[str, object] | None, more_headers: Mapping[str, str]
    ) -> ProviderResponse:
        headers = {**self._headers, **more_headers}
        return await self._tokens.send(method, f"/{self.name}/v1_0/{path}", json=body, headers=headers)
