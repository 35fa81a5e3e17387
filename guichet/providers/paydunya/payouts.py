"""Payouts of PayDunya: announced, then submitted, then asked about (docs/providers/paydunya.md, "Refunds").

An announcement moves nothing and has a token. The token is stored before the payout is submitted under it, and only
what PayDunya then says about the token counts: a submission that was lost is never made under another one.
"""

from typing import Final

from guichet.clock import MINUTE, SECOND, Clock, Instant, later
from guichet.domain.money import Hundredths
from guichet.providers.base import (
    Accepted,
    NotFound,
    NotProcessed,
    RefundInitiationResult,
    RefundRequest,
    RefundStatusResult,
    Unknown,
)
from guichet.providers.paydunya.networks import NETWORKS
from guichet.providers.paydunya.requests import MIN_AMOUNT, foreign_number, national_number
from guichet.providers.paydunya.responses import (
    CURRENCY,
    NOT_SUBMITTED,
    as_token,
    code_of,
    not_taken,
    read_payout_refusal,
    read_payout_status,
)
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import ProviderClient
from guichet.providers.shared.fields import text_or_none, units
from guichet.providers.shared.results import classify_http_error

PAYOUTS: Final = "/v2/disburse"
#: Seconds. The last two together are below the time that a provider may take for one poll.
_ANNOUNCE_TIMEOUT: Final = 15.0
_CHECK_TIMEOUT: Final = 6.0
_SUBMIT_TIMEOUT: Final = 12.0
#: Microseconds after which a payout that PayDunya still calls `created` is submitted again, under the same token.
_SUBMIT_AGAIN: Final = 10 * MINUTE
#: How soon the first poll after an announcement comes, which submits it. Later than this after the announcement,
#: another process may have submitted it before, and ended before it could store so: its lease would have ended by then.
_SUBMIT_AFTER: Final = 5 * SECOND
_SUBMIT_FIRST: Final = 30 * SECOND
_ANNOUNCED: Final = "announced_at"
_SUBMITTED: Final = "submitted_at"


class Payouts:
    def __init__(self, http: ProviderClient, clock: Clock) -> None:
        self._http = http
        self._clock = clock

    async def announce(self, request: RefundRequest) -> RefundInitiationResult:
        """The next poll submits it, once its token is stored; whatever is lost here may be announced again."""
        operator = request.charge.payment.operator
        network = NETWORKS[operator]
        if request.currency != CURRENCY:
            unpaid = ProviderAnswer.NOT_PAID_BY_PAYDUNYA(currency=request.currency)
            return NotProcessed("currency_not_accepted", unpaid)
        if request.amount < Hundredths(MIN_AMOUNT * 100):
            return NotProcessed("limit_reached", ProviderAnswer.TOO_SMALL(account="PayDunya", least=str(MIN_AMOUNT)))
        if foreign := foreign_number(operator, request.payee_number):
            return foreign
        body = {
            "account_alias": national_number(network, request.payee_number or ""),
            "amount": units(request.amount),
            "withdraw_mode": network.payout,
            "callback_url": request.charge.notify_url,
        }
        result = await self._http.post(f"{PAYOUTS}/get-invoice", body, timeout=_ANNOUNCE_TIMEOUT)
        answer = result.ok_object()
        token = as_token(answer.get("disburse_token") or answer.get("token"))
        if code_of(answer) == "00" and token is not None:
            now = self._clock.now()
            return Accepted(token, next_poll_at=later(now, _SUBMIT_AFTER), provider_data={_ANNOUNCED: str(now)})
        refused = read_payout_refusal(result) if result.ok else None
        return refused or not_taken(result)

    async def status(self, request: RefundRequest) -> RefundStatusResult:
        token = request.provider_reference
        if token is None:
            return await self._announce_again(request)
        asked = {"disburse_invoice": token}
        result = await self._http.post(f"{PAYOUTS}/check-status", asked, timeout=_CHECK_TIMEOUT)
        body = result.ok_object()
        if code_of(body) != "00":
            return Unknown(result.raw)
        disburse_id = text_or_none(body.get("disburse_id"))
        if disburse_id not in (None, request.reference) or text_or_none(body.get("token")) not in (None, token):
            return Unknown(ProviderAnswer.OTHER_REFERENCE(answer=result.raw))
        if str(body.get("status")).upper() != NOT_SUBMITTED:
            return read_payout_status(body, result.raw, token)
        return await self._submit_if_due(request, token)

    async def _announce_again(self, request: RefundRequest) -> RefundStatusResult:
        """Without a token nothing was ever submitted."""
        if request.ask_only:
            return NotFound(ProviderAnswer.NO_PAYDUNYA_INVOICE())
        result = await self.announce(request)
        return Unknown(result.raw) if isinstance(result, NotProcessed) else result

    async def _submit_if_due(self, request: RefundRequest, token: str) -> RefundStatusResult:
        """PayDunya says that it has no submission of this payout. One that was, or may have been, sent may still be on
        its way: it is sent again only some minutes later, under the same token and the same `disburse_id`, of which
        either alone lets a payout happen once."""
        now = self._clock.now()
        submitted_at = _last_submission(request, now)
        if request.ask_only or (submitted_at is not None and now - submitted_at < _SUBMIT_AGAIN):
            return Accepted()
        body = {"disburse_invoice": token, "disburse_id": request.reference}
        result = await self._http.post(f"{PAYOUTS}/submit-invoice", body, timeout=_SUBMIT_TIMEOUT)
        if isinstance(common := classify_http_error(result), NotProcessed):
            return Unknown(common.raw)
        sent = Accepted(token, provider_data={_SUBMITTED: str(now)})
        # A refusal counts unless an earlier submission is known: one that may have been sent had ten minutes to show.
        is_first = _SUBMITTED not in request.provider_data
        if not is_first or not result.ok or code_of(result.ok_object()) in ("", "00"):
            return sent
        return read_payout_refusal(result) or sent


def _last_submission(request: RefundRequest, now: Instant) -> Instant | None:
    """When it was, or may have been, submitted last; None for the first time."""
    submitted, announced = (request.provider_data.get(key) for key in (_SUBMITTED, _ANNOUNCED))
    if submitted is not None:
        return Instant(int(submitted))
    if announced is None or now - int(announced) < _SUBMIT_FIRST:
        return None
    return Instant(int(announced))
