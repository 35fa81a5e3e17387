"""FeexPay v2: all nineteen networks and cards with one account (docs/providers/feexpay.md).

There is no idempotency key, callbacks are not signed and refunds are payouts. A payin whose response was lost is found
in the history, where `callback_info` is our reference.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final
from urllib.parse import quote

from msgspec import structs

from guichet.clock import HOUR, Instant, later
from guichet.domain.money import Currency, Hundredths
from guichet.domain.reconciliation import Line
from guichet.providers.base import (
    CARDS,
    Accepted,
    Callback,
    CallbackReference,
    Charge,
    InitiationResult,
    NotProcessed,
    OtpRequestResult,
    RefundInitiationResult,
    RefundRequest,
    Refused,
    StatusResult,
    Unknown,
)
from guichet.providers.capabilities import FloatBalance
from guichet.providers.feexpay.history import FeexPayHistory
from guichet.providers.feexpay.responses import (
    is_about,
    is_about_another,
    read_code_sent,
    read_initiation,
    read_payin,
    read_payout,
    read_payout_status,
)
from guichet.providers.shared.account_checks import AccountSetup, Finding, answered, balances_read, no_call
from guichet.providers.shared.account_findings import AccountFinding, AccountSubject
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.shared.fields import (
    callback_reference,
    decode_json_object,
    hundredths,
    plain_text,
    text_or_none,
    units,
    value_at,
)
from guichet.providers.shared.listings import Body, StatesBalances, balance_of
from guichet.providers.shared.results import most_conclusive

#: The networks that do not settle in XOF.
_CURRENCIES: Final = {"mtn_cg": "XAF"}
#: The path and the `network` of payouts; the other operators have a path of their own name and no `network`.
_PAYOUTS: Final[dict[str, tuple[str, str | None]]] = {
    "mtn": ("transfer/global", "MTN"),
    "moov": ("transfer/global", "MOOV"),
    "celtiis_bj": ("celtiis_bj", "CELTIIS BJ"),
    "togocom_tg": ("togo", "TOGOCOM TG"),
    "moov_tg": ("togo", "MOOV TG"),
}
_NO_PAYOUT: Final = CARDS | {"coris"}
#: Where a payin without a code makes FeexPay text one (docs/providers/feexpay.md, "Initiating a payment"); everywhere
#: else the same request is a debit.
_TEXTS_CODES: Final = frozenset({"coris"})
#: Seconds. Some networks answer a payin only after the customer typed the PIN, or after a minute without it.
_INITIATION_TIMEOUT: Final = 75.0
_MAX_TEXT: Final = 60
#: How long after its request a pending row is believed without a look at the history: the other one may have ended.
_OTHER_ROW_AFTER: Final = HOUR
#: Bytes. The history's 500 rows need more than other responses.
_MAX_HISTORY: Final = 1024 * 1024
_PAYIN_STATUS: Final = "/api/transactions/public/single/status/"


class FeexPay(StatesBalances):
    account_settings = ("shop",)
    min_payin = Hundredths(100_00)
    initiation_timeout = _INITIATION_TIMEOUT

    def configure(self, settings: Mapping[str, str]) -> None:
        self._shop = settings["shop"]
        self.balance_path = f"/api/balance/public/getByShop/{self._shop}"
        self._http.headers = {"Authorization": f"Bearer {settings['api_key']}"}
        self._history = FeexPayHistory(self._ask_history, self._shop, self._clock)

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return operator not in _NO_PAYOUT

    def takes(self, operator: str, currency: Currency) -> bool:
        return currency == _currency(operator)

    async def initiate(self, charge: Charge) -> InitiationResult:
        if unserved := self.refuse_unserved(charge, "FeexPay"):
            return unserved
        if charge.payment.operator in _TEXTS_CODES and not charge.otp:
            return Refused("bad_otp", ProviderAnswer.NO_CODE_GIVEN())
        if charge.payment.operator in CARDS:
            result = await self._post("/api/transactions/public/initcard", self._card_body(charge))
        else:
            path = f"/api/transactions/public/requesttopay/{charge.payment.operator}"
            result = await self._post(path, self._payin_body(charge))
        return read_initiation(result, self._clock.now())

    async def send_code(self, charge: Charge) -> OtpRequestResult:
        if charge.payment.operator not in _TEXTS_CODES:
            return NotProcessed("configuration", ProviderAnswer.NO_CODES_FOR(operator=charge.payment.operator))
        if unserved := self.refuse_unserved(charge, "FeexPay"):
            return unserved
        body = self._payin_body(structs.replace(charge, otp=None))
        return read_code_sent(
            await self._post(f"/api/transactions/public/requesttopay/{charge.payment.operator}", body)
        )

    async def status(self, charge: Charge) -> StatusResult:
        payment = charge.payment
        find = partial(self._history.find, payment.reference, operator=payment.operator, kind="PAYIN")
        known = await self._known_payin(charge)
        return await self._most_conclusive(known, partial(self._payin, charge), find, payment.created_at)

    async def _known_payin(self, charge: Charge) -> StatusResult | None:
        """The state of the payin whose reference is known. One that only a callback named counts only if its state is
        about our reference: callbacks are not signed."""
        if charge.payment.provider_reference is not None:
            return await self._payin(charge, charge.payment.provider_reference)
        if charge.callback_reference is None:
            return None
        result = await self._http.get(_PAYIN_STATUS + quote(charge.callback_reference, safe=""))
        if not is_about(result, charge.payment.reference):
            return None
        return read_payin(result, charge, charge.callback_reference, _currency(charge.payment.operator))

    async def _payin(self, charge: Charge, reference: str) -> StatusResult:
        result = await self._http.get(_PAYIN_STATUS + reference)
        if is_about_another(result, charge.payment.reference):
            return Unknown(ProviderAnswer.OTHER_CALLBACK_INFO())
        return read_payin(result, charge, reference, _currency(charge.payment.operator))

    async def _most_conclusive(
        self,
        known: StatusResult | None,
        ask: Callable[[str], Awaitable[StatusResult]],
        find: Callable[[Instant], Awaitable[list[str] | Unknown]],
        sent_at: Instant,
    ) -> StatusResult:
        """What FeexPay says about a request of ours; `known`: of the row whose reference is known. After a failure the
        history is searched too, and where a row is pending for long: a request may have two rows, and the other one may
        have succeeded."""
        waits_long = isinstance(known, Accepted) and later(sent_at, _OTHER_ROW_AFTER) <= self._clock.now()
        if not (known is None or isinstance(known, Refused) or waits_long):
            return known
        references = await find(sent_at)
        if isinstance(references, Unknown):
            return known or references
        others = [await ask(reference) for reference in references]
        return most_conclusive([known, *others] if known else others) or Unknown()

    async def refund(self, request: RefundRequest) -> RefundInitiationResult:
        operator = request.charge.payment.operator
        path, network = _PAYOUTS.get(operator, (operator, None))
        body: dict[str, object] = {
            "shop": self._shop,
            "amount": units(request.amount),
            "phoneNumber": request.payee_number,
            "motif": "Remboursement",
            "callback_info": request.reference,
        }
        if network:
            body["network"] = network
        return read_payout(await self._post(f"/api/payouts/public/{path}", body), self._clock.now())

    async def refund_status(self, request: RefundRequest) -> StatusResult:
        operator, sent_at = request.charge.payment.operator, request.sent_at or self._clock.now()
        find = partial(self._history.find, request.reference, operator=operator, kind="PAYOUT")
        ask = partial(self._payout, operator)
        known = await ask(request.provider_reference) if request.provider_reference is not None else None
        return await self._most_conclusive(known, ask, find, sent_at)

    async def _payout(self, operator: str, reference: str) -> StatusResult:
        result = await self._http.get(f"/api/payouts/status/public/{reference}")
        return read_payout_status(result, reference, _currency(operator))

    async def history(self, since: Instant, until: Instant, notify_url: str) -> list[Line] | Unknown:
        return await self._history.lines(since, until)

    def balances_in(self, body: Body) -> list[FloatBalance | None]:
        """One for each network of the shop, by FeexPay's name for it, such as `MTN CG`. The answer has no currency."""
        balances = value_at(body, "data", "data", "balances")
        if not isinstance(balances, dict):
            return [None]
        return [
            balance_of(network, hundredths(amount), _currency(network.lower().replace(" ", "_")))
            for network, amount in balances.items()
        ]

    def collection_wallet(self, operator: str) -> str:
        return operator.upper().replace("_", " ")

    async def check_account(self, setup: AccountSetup) -> list[Finding]:
        shop = await self._http.get(f"/api/shop/{self._shop}/get_shop")
        registered = AccountFinding.IN_SHOP(address=setup.callback_addresses[0])
        return [
            answered(AccountSubject.SHOP(), shop, AccountFinding.SHOP_ACCEPTED()),
            balances_read(await self.balances()),
            no_call(AccountSubject.NETWORKS(), AccountFinding.NETWORK_CLOSED()),
            no_call(AccountSubject.REGISTERED_CALLBACK(), registered),
            no_call(AccountSubject.LIMITS(), AccountFinding.LIMITS_OF_FEEXPAY()),
        ]

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        """Callbacks are not signed."""
        body = decode_json_object(callback.body) or {}
        provider_reference = text_or_none(body.get("reference")) or body.get("order_id")
        return callback_reference(body.get("callback_info"), provider_reference)

    def _payin_body(self, charge: Charge) -> dict[str, object]:
        body: dict[str, object] = {
            "shop": self._shop,
            "amount": units(charge.amount),
            "phoneNumber": charge.payment.phone_number,
            "description": plain_text(charge.payment.description, _MAX_TEXT),
            "callback_info": charge.payment.reference,
        }
        optional = {
            "first_name": charge.payment.firstname and plain_text(charge.payment.firstname, _MAX_TEXT),
            "last_name": charge.payment.lastname and plain_text(charge.payment.lastname, _MAX_TEXT),
            "email": charge.payment.email,
            "otp": charge.otp,
            "return_url": charge.return_url,
            "cancel_url": charge.return_url,
        }
        return body | {name: value for name, value in optional.items() if value}

    def _card_body(self, charge: Charge) -> dict[str, object]:
        page = charge.return_url
        redirects: dict[str, object] = {"success_redirect_url": page, "error_redirect_url": page} if page else {}
        return {
            "shop": self._shop,
            "amount": units(charge.amount),
            "phone": charge.payment.phone_number or "0",
            "first_name": plain_text(charge.payment.firstname or "", _MAX_TEXT),
            "last_name": plain_text(charge.payment.lastname or "", _MAX_TEXT),
            "email": charge.payment.email,
            "country": charge.payment.country,
            "type_card": charge.payment.operator,
            "currency": charge.payment.currency,
            "description": plain_text(charge.payment.description, _MAX_TEXT),
            "callback_info": charge.payment.reference,
            **redirects,
        }

    async def _ask_history(self, body: Mapping[str, str]) -> ProviderResponse:
        return await self._http.post("/api/transactions/history", body, max_bytes=_MAX_HISTORY)

    async def _post(self, path: str, body: Mapping[str, object]) -> ProviderResponse:
        """How long it may take is the caller's rule; see `initiation_timeout`."""
        return await self._http.post(path, body, timeout=_INITIATION_TIMEOUT + 5)


def _currency(operator: str) -> str:
    return _CURRENCIES.get(operator, "XOF")
