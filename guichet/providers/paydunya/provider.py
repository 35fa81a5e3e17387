"""PayDunya: Mobile Money of six countries, and cards on its page (docs/providers/paydunya.md).

A payin takes two calls: an invoice, which moves nothing, and `softpay`, which charges one network on it and is never
sent twice. A payout takes two as well (`payouts.py`). There is no history and no refund of a payin; callbacks are not
signed.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

from guichet.clock import Clock
from guichet.domain.messages import Answer, verbatim
from guichet.domain.money import Currency, Hundredths
from guichet.http_client import HttpClient
from guichet.providers.base import (
    Accepted,
    Callback,
    CallbackReference,
    Charge,
    InitiationResult,
    NotProcessed,
    RefundInitiationResult,
    RefundRequest,
    RefundStatusResult,
    Refused,
    StatusResult,
    Unknown,
)
from guichet.providers.capabilities import FloatBalance
from guichet.providers.paydunya.callbacks import read_callback
from guichet.providers.paydunya.networks import NETWORKS
from guichet.providers.paydunya.payouts import PAYOUTS, Payouts
from guichet.providers.paydunya.requests import MIN_AMOUNT, PayinRequests, as_address, foreign_number
from guichet.providers.paydunya.responses import (
    CURRENCY,
    NO_SUCH_PATH,
    Verdict,
    as_token,
    balances_in,
    code_of,
    is_unpaid,
    not_taken,
    read_invoice_status,
    refusal,
    says_no,
    says_yes,
    verdict,
)
from guichet.providers.shared.account_checks import AccountSetup, Finding, balances_read, no_call, ok, wrong
from guichet.providers.shared.account_findings import AccountFinding, AccountSubject
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.choices import switch
from guichet.providers.shared.client import HttpProvider, ProviderAccount, ProviderResponse
from guichet.providers.shared.listings import read_balances
from guichet.providers.shared.results import classify_http_error

#: Seconds. `moov_ci` answers `softpay` only after the customer typed the PIN. Together they stay below
#: `initiation_timeout`, so that the invoice's token is stored whatever happens to the second call.
_INVOICE_TIMEOUT: Final = 15.0
_SOFTPAY_TIMEOUT: Final = 75.0
_CONFIRM_TIMEOUT: Final = 10.0
_CODE_REFUSED: Final = 422
_INVOICES: Final = "/v1/checkout-invoice"
_TEST_PATH: Final = "sandbox-api"
_TEST: Final = "test_"
#: What no invoice is called.
_NO_INVOICE: Final = "guichet-probe"


def is_test(name: str) -> bool:
    """Whether a private key or an invoice's token is one of the test mode."""
    return name.startswith(_TEST)


def build(account: ProviderAccount, http_client: HttpClient, clock: Clock) -> "PayDunya":
    """The call that states balances stands in no page of theirs that could be read: a setting leaves it out. Raises
    ValueError for settings that contradict each other."""
    states_balances = switch(account.settings, "balances", default=True)
    return (PayDunyaWithBalances if states_balances else PayDunya)(account, http_client, clock)


class PayDunya(HttpProvider):
    key_setting = "token"
    min_payin = Hundredths(MIN_AMOUNT * 100)
    initiation_timeout = _INVOICE_TIMEOUT + _SOFTPAY_TIMEOUT + _CONFIRM_TIMEOUT + 5

    def configure(self, settings: Mapping[str, str]) -> None:
        self._is_test = is_test(settings["private_key"])
        if self._is_test != (_TEST_PATH in urlsplit(self._http.base_url).path.split("/")):
            raise ValueError("base_url ends with /sandbox-api for a private_key that begins with test_, else with /api")
        self._master_key = settings["master_key"]
        self._http.headers = {
            "PAYDUNYA-MASTER-KEY": self._master_key,
            "PAYDUNYA-PRIVATE-KEY": settings["private_key"],
            "PAYDUNYA-TOKEN": settings["token"],
        }
        self._requests = PayinRequests(settings)
        self._payouts = Payouts(self._http, self._clock)

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return operator in NETWORKS and NETWORKS[operator].payout is not None

    def takes(self, operator: str, currency: Currency) -> bool:
        return operator in NETWORKS and currency == CURRENCY

    def payout_wallet(self, operator: str) -> str:
        return NETWORKS[operator].country

    async def initiate(self, charge: Charge) -> InitiationResult:
        """The invoice, then its charge; where there is no charge, the invoice's own page."""
        unserved = self.refuse_unserved(charge, "PayDunya")
        if unserved := unserved or foreign_number(charge.payment.operator, charge.payment.phone_number):
            return unserved
        created = await self._create(self._requests.invoice(charge))
        body = created.ok_object()
        token = as_token(body.get("token"))
        if code_of(body) != "00" or token is None:
            return not_taken(created)
        if is_test(token) != self._is_test:
            return NotProcessed("configuration", ProviderAnswer.OTHER_MODE(mode=token.partition("_")[0]))
        if NETWORKS[charge.payment.operator].softpay is not None:
            return await self._charge(charge, token)
        page = as_address(body.get("response_text"))
        return Accepted(token, page) if page else not_taken(created)

    async def _charge(self, charge: Charge, token: str) -> InitiationResult:
        """Charges the network on the invoice. Without an explicit refusal the invoice's state decides."""
        path, fields = self._requests.softpay(charge, token)
        result = await self._http.post(f"/v1/softpay/{path}", fields, timeout=_SOFTPAY_TIMEOUT)
        refused = _refused_by_status(result, charge)
        if isinstance(refused, NotProcessed | Refused):
            return refused
        if refused is not None:
            return Accepted(token)
        body = result.object() or {}
        if result.ok and says_yes(body):
            is_final = NETWORKS[charge.payment.operator].answers_when_final or charge.otp
            next_poll_at = self._clock.now() if is_final else None
            return Accepted(token, self._requests.page(body, charge), next_poll_at=next_poll_at)
        return await self._refused_by_text(result, body, token)

    async def _refused_by_text(self, result: ProviderResponse, body: Mapping[str, Any], token: str) -> InitiationResult:
        """The texts are free and may change: one that is in no table refuses only an invoice that is not paid."""
        match verdict(body):
            case Verdict.NOT_TAKEN:
                return NotProcessed("configuration", result.raw)
            case Verdict.REFUSED:
                return refusal(body, result.raw)
            case Verdict.UNLISTED if says_no(body) and is_unpaid(await self._confirm(token)):
                return refusal(body, result.raw)
        return Accepted(token)

    async def status(self, charge: Charge) -> StatusResult:
        """The invoice's. One that only a callback named is proven by our reference in it."""
        token = charge.payment.provider_reference
        invoice = as_token(token or charge.callback_reference)
        if invoice is None:
            return Unknown(ProviderAnswer.NO_PAYDUNYA_INVOICE())
        mode = "test" if self._is_test else "live"
        return read_invoice_status(await self._confirm(invoice), charge, invoice, mode=mode, proven=token is not None)

    async def refund(self, request: RefundRequest) -> RefundInitiationResult:
        return await self._payouts.announce(request)

    async def refund_status(self, request: RefundRequest) -> RefundStatusResult:
        return await self._payouts.status(request)

    async def probe(self) -> Answer:
        """Wrong keys are told by the code 1001; right ones by another, since there is no such invoice."""
        result = await self._confirm(_NO_INVOICE)
        code = code_of(result.ok_object())
        return "ok" if code not in ("", "1001") else result.raw

    async def check_account(self, setup: AccountSetup) -> list[Finding]:
        """Makes an invoice that nobody is shown: nobody can pay it."""
        created = await self._create(self._requests.invoice_of(MIN_AMOUNT, "Verification"))
        subject, is_made = AccountSubject.CREDENTIALS(), code_of(created.ok_object()) == "00"
        by_payout = AccountFinding.TRIED_BY_PAYOUT(address=f"{setup.callback_addresses[1]}/…")
        return [
            ok(subject, AccountFinding.INVOICE_MADE()) if is_made else wrong(subject, verbatim(created.raw)),
            no_call(AccountSubject.REGISTERED_CALLBACK(), by_payout),
            no_call(AccountSubject.NETWORKS(), AccountFinding.SERVICE_OFF()),
            no_call(AccountSubject.LIMITS(), AccountFinding.LIMITS_OF_PAYDUNYA()),
        ]

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        return read_callback(callback, self._master_key)

    async def _create(self, invoice: Mapping[str, Any]) -> ProviderResponse:
        return await self._http.post(f"{_INVOICES}/create", invoice, timeout=_INVOICE_TIMEOUT)

    async def _confirm(self, token: str) -> ProviderResponse:
        return await self._http.get(f"{_INVOICES}/confirm/{quote(token, safe='')}", timeout=_CONFIRM_TIMEOUT)


class PayDunyaWithBalances(PayDunya):
    async def balances(self) -> list[FloatBalance] | Unknown:
        return read_balances(await self._http.get(f"{PAYOUTS}/check-balance"), balances_in)

    async def check_account(self, setup: AccountSetup) -> list[Finding]:
        return [*await super().check_account(setup), balances_read(await self.balances())]


def _refused_by_status(result: ProviderResponse, charge: Charge) -> NotProcessed | Refused | Unknown | None:
    """What a charge became by its HTTP status, whatever the body says; None when the body must tell it."""
    if common := classify_http_error(result):
        return common
    if result.status == NO_SUCH_PATH:
        return NotProcessed("configuration", result.raw)
    if result.status == _CODE_REFUSED and charge.otp and result.object() is not None:
        return Refused("bad_otp", result.raw)
    return None
