"""The end of a trial: the merchants read what is still open until nothing waits without a reason."""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from guichet.domain.payments import Payment, Refund
from reliability.api_client import ApiClient
from reliability.books import Comparison, compare
from reliability.installation import Installation
from reliability.journal import Journal
from reliability.merchant import Merchant, WebhookReceiver
from reliability.processes import guichet, run_command

#: Seconds between two looks at the books.
_LOOK: Final = 10.0
_WIDTH: Final = 16


async def configure_endpoints(api: ApiClient, merchants: Sequence[Merchant], receiver: WebhookReceiver) -> None:
    """Sends every merchant's webhooks to the receiver, which learns their secrets."""
    for merchant in merchants:
        answer = await api.call("PUT", "/v1/webhooks/endpoint", merchant.key, json={"url": receiver.url(merchant)})
        assert answer is not None, "nobody answers"
        assert answer.status == 200, answer
        merchant.secret = answer.data["secret"]


async def settle(
    installation: Installation, api: ApiClient, journal: Journal, merchants: list[Merchant], seconds: float
) -> Comparison:
    """The comparison of the three books once nothing differs, or after `seconds`. Guichet must run."""
    began = time.monotonic()
    while True:
        found = await compare(installation, journal, merchants, proof_expected=False, with_ledger=False)
        settled = not found.difference_count and not found.figures["deliveries that wait"]
        if settled or time.monotonic() - began > seconds:
            return found
        await _read_open(api, found.unexplained, {merchant.id: merchant.key for merchant in merchants})
        await asyncio.sleep(_LOOK)


async def audit_faults(installation: Installation) -> list[str]:
    """What `ledger audit` and `audit-log verify` find, in words."""
    faults = []
    for command in (("ledger", "audit"), ("audit-log", "verify")):
        code, out, err = await run_command(guichet(*command), installation.environ)
        if code != 0:
            faults.append(f"guichet {' '.join(command)}: {(out + err)[-500:]}")
    return faults


async def _read_open(api: ApiClient, subjects: Sequence[Payment | Refund], keys: dict[int, str]) -> None:
    """Reading a pending payment asks its provider."""
    gate = asyncio.Semaphore(_WIDTH)

    async def read(subject: Payment | Refund) -> None:
        kind = "payments" if isinstance(subject, Payment) else "refunds"
        async with gate:
            await api.call("GET", f"/v1/{kind}/{subject.reference}", keys[subject.merchant_id])

    await asyncio.gather(*(read(subject) for subject in subjects))
