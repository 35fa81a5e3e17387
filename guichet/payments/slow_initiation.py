"""Slow initiations: a request waits twenty seconds at most, and an initiation that takes longer ends in the background.

Some networks answer only after the customer typed the PIN. The request is then answered with the pending payment. The
provider's answer is applied when it comes; a refusal is told by a webhook, since no 402 can tell it any more (D89).
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final

from guichet.context import AppContext
from guichet.domain.payments import Payment
from guichet.logs import log

#: Seconds that a request, of a merchant or of a hosted page, waits for an initiation at most.
REQUEST_WAIT: Final = 20.0


@dataclass(slots=True)
class WaitingRequest:
    """The request that waits for an initiation. `has_result`: the provider's last answer is known and being applied, so
    the request will be answered with it. `is_answered`: nobody waits any more. Never both, as one event loop sets them.
    """

    has_result: bool = False
    is_answered: bool = False


async def wait_for_initiation(
    ctx: AppContext, payment: Payment, initiation: Coroutine[Any, Any, Payment], waiting: WaitingRequest
) -> Payment:
    """Runs `initiation` in a task. Returns or raises what it does if its result is there within REQUEST_WAIT seconds,
    otherwise returns `payment`, which is pending."""
    task = asyncio.create_task(initiation)
    ctx.slow_initiations.add(task)
    task.add_done_callback(ctx.slow_initiations.discard)
    try:
        await asyncio.wait({task}, timeout=REQUEST_WAIT)
    finally:  # Whoever waits may also have gone away.
        if not (waiting.has_result or task.done()):
            waiting.is_answered = True
            task.add_done_callback(_log_failure)
            log.info("initiation.slow", reference=payment.reference)
    return payment if waiting.is_answered else await asyncio.shield(task)


def _log_failure(task: asyncio.Task[Payment]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.error("initiation.failed", error=repr(error))


async def finish_slow_initiations(ctx: AppContext, grace: float) -> None:
    """When the process stops: initiations that are running have `grace` seconds to end. The others are given up like
    lost answers: the payments are polled once their leases have run out."""
    if ctx.slow_initiations:
        await asyncio.wait(ctx.slow_initiations, timeout=grace)
    for task in list(ctx.slow_initiations):
        task.cancel()
    await asyncio.gather(*ctx.slow_initiations, return_exceptions=True)
