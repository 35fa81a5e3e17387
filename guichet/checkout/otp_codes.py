"""A customer asks on a payment form for the code that the operator texts: how often, and what the page then says."""

from dataclasses import replace
from typing import Final

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter

from guichet.checkout import format as written
from guichet.checkout.fields import Attempt
from guichet.checkout.forms import Checked
from guichet.checkout.page_request import Visit
from guichet.context import AppContext
from guichet.domain.catalogue import PaymentMode
from guichet.domain.payment_links import PaymentLink
from guichet.logs import log
from guichet.payments.otp_codes import CodeNotSent, send_code

#: The button of a form that asks for the code instead of paying: its name and value.
BUTTON: Final = ("do", "code")
#: Minutes in which codes are counted, how many a number may be sent, and how many one address may ask for.
WINDOW: Final = 10
PER_PHONE: Final = 3
PER_ADDRESS: Final = 10
#: Reasons whose sentence for a failed payment is also right here; anything else is told as a refusal to send.
_SHARED: Final = frozenset({"payer_not_found", "operator_unavailable", "configuration", "not_connected"})


class CodeLimiter:
    """Nobody may fill somebody's phone with codes, from one address or from many. Never switched off.

    A number is counted whoever asks. An address may stand for a whole town, so it has more, but not enough to try
    numbers. Counts in Redis where there is one, else (and while it is away) in this process's memory.
    """

    def __init__(self, shared: RedisStorage | None) -> None:
        self._phone = RateLimitItemPerMinute(PER_PHONE, WINDOW, namespace="code-phone")
        self._address = RateLimitItemPerMinute(PER_ADDRESS, WINDOW, namespace="code-address")
        self._local = MovingWindowRateLimiter(MemoryStorage())
        self._shared = None if shared is None else MovingWindowRateLimiter(shared)

    async def allows(self, address: str, phone_number: str) -> bool:
        """Counts a code; False when it must not be asked for."""
        if self._shared is not None:
            try:
                return await self._hit(self._shared, address, phone_number)
            except self._shared.storage.base_exceptions as error:
                log.error("codes.redis_away", error=repr(error), limit="counted by each process meanwhile")
        return await self._hit(self._local, address, phone_number)

    async def _hit(self, window: MovingWindowRateLimiter, address: str, phone_number: str) -> bool:
        return await window.hit(self._address, address) and await window.hit(self._phone, phone_number)


def asked_for(mode: PaymentMode, form: dict[str, str]) -> bool:
    """Whether the customer pressed the button for a code."""
    name, value = BUTTON
    return mode.sends_code and form.get(name) == value


def needed(checked: Checked) -> dict[str, list[str]]:
    """What is wrong for a code: only the number counts."""
    return {name: faults for name, faults in checked.faults.items() if name == "phone_number"}


async def ask(
    ctx: AppContext, visit: Visit, link: PaymentLink, mode: PaymentMode, phone_number: str, attempt: Attempt
) -> tuple[Attempt, str | None]:
    """Asks the operator: what to show in the form, and the key of the sentence above it if no code is on its way.

    Raises InvalidRequest when this mode cannot be used for this link at all.
    """
    try:
        await send_code(ctx, mode, phone_number, link.amount, link.currency, link.description)
    except CodeNotSent as failure:
        name, sentence = _fault(visit, mode, failure.reason)
        notice = "code.notice" if failure.reason else "code.notice_unclear"
        return replace(attempt, faults={name: [sentence]}), notice
    shown = written.masked(phone_number, mode.dial_code)
    return replace(attempt, code_sent=visit.say("code.sent", phone=shown)), None


def too_many(visit: Visit, attempt: Attempt) -> Attempt:
    return replace(attempt, faults={"otp": [visit.say("code.too_many", minutes=WINDOW)]})


def _fault(visit: Visit, mode: PaymentMode, reason: str | None) -> tuple[str, str]:
    """The field it concerns, and a sentence about it."""
    name = "phone_number" if reason == "payer_not_found" else "otp"
    if reason is None:
        return name, visit.say("code.unclear")
    key = f"failure.{reason}" if reason in _SHARED else "code.refused"
    return name, visit.say(key, mode=mode.name)
