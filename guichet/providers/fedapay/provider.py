"""FedaPay: payins by PIN or on its page, and payouts, with one account (docs/providers/fedapay.md).

A payin is a transaction, its token, and then the request for the PIN, which alone moves money: what is lost before it
took nothing. A payout is created, then started, which alone moves money. Our reference is unique in the account and
finds both again.
"""

from collections.abc import Mapping
from typing import Any, Final

from guichet.clock import DAY, Instant
from guichet.domain.money import Currency, Hundredths
from guichet.domain.reconciliation import Line
from guichet.providers.base import (
    CARDS,
    Accepted,
    Callback,
    CallbackReference,
    Charge,
    InitiationResult,
    NotFound,
    NotProcessed,
    RefundInitiationResult,
    RefundRequest,
    RefundStatusResult,
    Refused,
    StatusResult,
    Unknown,
)
from guichet.providers.capabilities import FloatBalance
from guichet.providers.fedapay import checks
from guichet.providers.fedapay.client import FedaPayClient, id_of
from guichet.providers.fedapay.history import read_history
from guichet.providers.fedapay.networks import CURRENCY, NETWORKS, Networks
from guichet.providers.fedapay.payouts import Payouts
from guichet.providers.fedapay.responses import (
    balances_in,
    is_not_found,
    is_refused_repeat,
    object_in,
    our_reference,
    read_push,
    read_transaction,
    token_in,
)
from guichet.providers.shared.account_checks import AccountSetup, Finding, balances_read
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.shared.fields import (
    decode_json_object,
    plain_text,
    return_url,
    text_or_none,
    units,
)
from guichet.providers.shared.listings import Body, StatesBalances
from guichet.providers.shared.results import classify_http_error

_MAX_TEXT: Final = 60
#: Seconds. FedaPay publishes none; its libraries wait 80. Together, with the token asked for twice, they are what an
#: initiation may take.
_CREATION_TIMEOUT: Final = 12.0
_TOKEN_TIMEOUT: Final = 8.0
_PUSH_TIMEOUT: Final = 30.0


def is_sandbox_key(settings: Mapping[str, str]) -> bool:
    """The keys and the secrets of webhooks say which side they belong to."""
    key, secret = settings.get("secret_key") or "", settings.get("webhook_secret") or ""
    return "_sandbox_" in key or secret.startswith("wh_sandbox")


class FedaPay(StatesBalances):
    balance_path = "/v1/balances"
    min_payin = Hundredths(100_00)
    #: A transaction that nobody pays expires then; the prompt of a network sooner.
    page_lasts = DAY
    key_setting = "secret_key"
    initiation_timeout = _CREATION_TIMEOUT + 2 * _TOKEN_TIMEOUT + _PUSH_TIMEOUT

    def configure(self, settings: Mapping[str, str]) -> None:
        self._networks = Networks(settings)
        self._http.headers = {"Authorization": f"Bearer {settings['secret_key']}"}
        self._client = FedaPayClient(self._http)
        self._payouts = Payouts(self._client, self._networks, self._clock)

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return self._networks.payout_mode(operator) is not None

    def takes(self, operator: str, currency: Currency) -> bool:
        return operator in self._networks.served and currency == CURRENCY

    async def initiate(self, charge: Charge) -> InitiationResult:
        if unserved := self.refuse_unserved(charge, "FedaPay"):
            return unserved
        created = await self._create(charge)
        if not isinstance(created, str):
            return created
        token = await self._token(created)
        if isinstance(token, NotProcessed):
            return token
        key, page = token
        if not NETWORKS[charge.payment.operator].push:
            lost = NotProcessed("operator_unavailable", ProviderAnswer.PAY_PAGE_LOST())
            return Accepted(created, page) if page else lost
        return await self._push(charge, created, key)

    async def _create(self, charge: Charge) -> str | Accepted | NotProcessed | Refused:
        """FedaPay's id of the transaction. Whatever goes wrong, nothing was taken: a transaction alone takes nothing,
        and nobody was sent to its page. One that existed and is not as it was created is only asked about."""
        reference, page = charge.payment.reference, return_url(charge, None)
        body: dict[str, object] = {
            "description": plain_text(charge.payment.description, _MAX_TEXT),
            "amount": units(charge.amount),
            "currency": {"iso": CURRENCY},
            "merchant_reference": reference,
            "custom_metadata": {"reference": reference},
        }
        if page and not NETWORKS[charge.payment.operator].push:
            body["callback_url"] = page
        result = await self._http.post("/v1/transactions", body, timeout=_CREATION_TIMEOUT)
        if is_refused_repeat(result):
            result = await self._client.by_reference("transaction", reference)
            existing = object_in(result, "transaction")
            if existing and (existing.get("status") != "pending" or our_reference(existing) != reference):
                return Accepted(next_poll_at=self._clock.now())
        if transaction_id := id_of(result, "transaction"):
            return transaction_id
        if isinstance(common := classify_http_error(result), NotProcessed):
            return common
        if result.status == 404:  # A wrong address.
            return NotProcessed("configuration", result.raw)
        explicit = 400 <= result.status < 500 and result.object() is not None
        return Refused("refused", result.raw) if explicit else NotProcessed(raw=result.raw)

    async def _token(self, transaction_id: str) -> tuple[str, str | None] | NotProcessed:
        """The token and the address of the page. It may be asked for again."""
        result = ProviderResponse.none(NotProcessed())
        for _ in range(2):
            result = await self._http.post(f"/v1/transactions/{transaction_id}/token", {}, timeout=_TOKEN_TIMEOUT)
            if token := token_in(result):
                return token
            if 400 <= result.status < 500:
                break
        common = classify_http_error(result)
        return common if isinstance(common, NotProcessed) else NotProcessed(raw=result.raw)

    async def _push(self, charge: Charge, transaction_id: str, token: str) -> InitiationResult:
        """Asks for the PIN, once: nobody knows whether a second request for one token asks twice."""
        operator = charge.payment.operator
        body = {"token": token, "phone_number": self._networks.phone(operator, charge.payment.phone_number)}
        path = f"/v1/{self._networks.mode(operator)}"
        return read_push(await self._http.post(path, body, timeout=_PUSH_TIMEOUT), transaction_id)

    async def status(self, charge: Charge) -> StatusResult:
        """By FedaPay's id, else by our reference. An id that only a callback named is asked about too; the answer
        counts if it states our reference."""
        transaction_id = charge.payment.provider_reference
        if transaction_id is None:
            result = await self._client.by_reference("transaction", charge.payment.reference)
            transaction_id = charge.callback_reference if is_not_found(result) else None
            if is_not_found(result) and transaction_id is None:
                return NotFound(result.raw)
            if transaction_id is None:
                return self._read(result, charge)
        return self._read(await self._client.by_id("transaction", transaction_id), charge)

    def _read(self, result: ProviderResponse, charge: Charge) -> StatusResult:
        operator = charge.payment.operator
        mode = self._networks.mode(operator) if operator in NETWORKS else None
        return read_transaction(result, charge, mode, self._clock.now())

    async def refund(self, request: RefundRequest) -> RefundInitiationResult:
        return await self._payouts.pay(request)

    async def refund_status(self, request: RefundRequest) -> RefundStatusResult:
        return await self._payouts.status(request)

    async def history(self, since: Instant, until: Instant, notify_url: str) -> list[Line] | Unknown:
        return await read_history(self._client.rows, since, until)

    def balances_in(self, body: Body) -> list[FloatBalance | None]:
        return balances_in(body)

    def payout_wallet(self, operator: str) -> str:
        return self._networks.payout_mode(operator) or ""

    async def account_identity(self) -> str | Unknown | None:
        """The account that every transaction names. Unknown while there is none."""
        result = await self._client.rows("transaction", 1, 1)
        rows = result.ok_object().get("v1/transactions")
        first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
        return text_or_none(first.get("account_id")) or Unknown(result.raw)

    async def check_account(self, setup: AccountSetup) -> list[Finding]:
        modes = {operator: self._networks.mode(operator) for operator in setup.operators if operator not in CARDS}
        return [balances_read(await self.balances()), *await checks.check(setup, self._http, modes)]

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        """Signatures are checked when `webhook_secret` is configured. A payout may have the id of a transaction, so ids
        count only beside our reference."""
        event = decode_json_object(callback.body)
        if event is None or not self.is_signed(callback, "x-fedapay-signature", b".", scheme="s"):
            return None
        entity = _entity(event)
        kind = str(event.get("name") or event.get("type") or "").partition(".")[0]
        if kind not in ("transaction", "payout") or (reference := our_reference(entity)) is None:
            return CallbackReference()
        return CallbackReference(reference, text_or_none(entity.get("id")) if kind == "transaction" else None)


def _entity(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object, or the text of one."""
    entity = event.get("entity")
    if isinstance(entity, str):
        return decode_json_object(entity.encode()) or {}
    return entity if isinstance(entity, dict) else {}
