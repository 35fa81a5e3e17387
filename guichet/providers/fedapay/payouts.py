"""Payouts of FedaPay: created, then started. Only the start moves money; a creation can be found by our reference.

Source: docs/providers/fedapay.md, "Refunds".
"""

from typing import Final

from guichet.clock import MINUTE, Clock, Instant, later
from guichet.providers.base import (
    Accepted,
    FloatEmpty,
    NotFound,
    RefundInitiationResult,
    RefundRequest,
    RefundStatusResult,
    Refused,
    Unknown,
)
from guichet.providers.fedapay.client import FedaPayClient, id_of
from guichet.providers.fedapay.networks import CURRENCY, Networks
from guichet.providers.fedapay.responses import (
    NOT_STARTED,
    is_refused_repeat,
    object_in,
    read_payout,
    read_payout_refusal,
)
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.shared.fields import units
from guichet.providers.shared.results import as_refund_status, as_repeated_refund

#: How long after its last start a payout that is still not started is started again: that start is not on its way then.
_START_AGAIN: Final = 3 * MINUTE
#: The name under which the time of the last start is stored with the refund.
_STARTED_AT: Final = "started_at"


class Payouts:
    def __init__(self, client: FedaPayClient, networks: Networks, clock: Clock) -> None:
        self._client = client
        self._networks = networks
        self._clock = clock

    async def pay(self, request: RefundRequest) -> RefundInitiationResult:
        operator = request.charge.payment.operator
        mode = self._networks.payout_mode(operator)
        if mode is None:
            return Refused("no_refund")
        payer = request.charge.payment
        body: dict[str, object] = {
            "amount": units(request.amount),
            "currency": {"iso": CURRENCY},
            "mode": mode,
            "description": "Remboursement",
            # Without an address of mail: FedaPay takes the same address for the same customer, and renames it.
            "customer": {
                "firstname": payer.firstname or "Client",
                "lastname": payer.lastname or "Client",
                "phone_number": self._networks.phone(operator, request.payee_number),
            },
            "merchant_reference": request.reference,
            "custom_metadata": {"reference": request.reference},
        }
        created = await self._client.create_payout(body)
        if is_refused_repeat(created):
            created = await self._client.by_reference("payout", request.reference)
            return await self._start_if_pending(created, request)
        if id_of(created, "payout"):
            return await self._start_if_pending(created, request)
        if created.ok:
            return Unknown(created.raw)
        return read_payout_refusal(created)

    async def _start_if_pending(self, result: ProviderResponse, request: RefundRequest) -> RefundInitiationResult:
        read = read_payout(result, request.reference)
        if not isinstance(read, Accepted) or not _is_not_started(result):
            return Unknown(read.raw) if isinstance(read, NotFound) else read
        return await self._start(str(read.provider_reference), request)

    async def _start(self, payout_id: str, request: RefundRequest) -> RefundInitiationResult:
        accepted = Accepted(payout_id, provider_data={_STARTED_AT: str(self._clock.now())})
        result = await self._client.start(payout_id)
        if result.ok:
            return accepted
        refusal = read_payout_refusal(result)
        if isinstance(refusal, Unknown):
            return accepted
        if not isinstance(refusal, Refused):
            return refusal
        # Only what is still not started now was refused: it may have been started by a request before this one.
        again = await self._client.by_id("payout", payout_id)
        read = read_payout(again, request.reference)
        if _is_not_started(again) and isinstance(read, Accepted):
            return refusal
        return Unknown(read.raw) if isinstance(read, NotFound) else read

    async def status(self, request: RefundRequest) -> RefundStatusResult:
        payout_id = request.provider_reference
        if payout_id is not None:
            result = await self._client.by_id("payout", payout_id)
        else:
            result = await self._client.by_reference("payout", request.reference)
        read = read_payout(result, request.reference)
        if isinstance(read, NotFound):
            return await self._after_not_found(read, request)
        if not isinstance(read, Accepted) or not _is_not_started(result) or request.ask_only:
            return read
        if self._clock.now() < later(self._last_start(request), _START_AGAIN):
            return read
        return _as_status_of_start(await self._start(str(read.provider_reference), request), read)

    def _last_start(self, request: RefundRequest) -> Instant:
        started_at = request.provider_data.get(_STARTED_AT)
        return Instant(int(started_at)) if started_at else request.sent_at or self._clock.now()

    async def _after_not_found(self, missing: NotFound, request: RefundRequest) -> RefundStatusResult:
        """It is made again only once several answers proved that there is none."""
        if request.provider_reference is not None:
            return Unknown(missing.raw)
        if not request.never_arrived or request.ask_only:
            return missing
        return as_repeated_refund(await self.pay(request), request)


def _is_not_started(result: ProviderResponse) -> bool:
    return str(object_in(result, "payout").get("status")).upper() == NOT_STARTED


def _as_status_of_start(result: RefundInitiationResult, read: Accepted) -> RefundStatusResult:
    """A payout that was read as not started moved nothing so far, whatever became of the start before: an empty float,
    or a refusal, is now the answer to this request."""
    if isinstance(result, FloatEmpty | Refused):
        return result
    status = as_refund_status(result)
    return read if isinstance(status, Unknown) else status
