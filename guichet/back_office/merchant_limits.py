"""A merchant's own limits: requests a minute, and amounts of live payments."""

from dataclasses import asdict
from typing import Final

from guichet.audit_log import entries as audit_log
from guichet.clock import Clock
from guichet.db.engine import Database
from guichet.domain.audit_log import Act, Actor, FactName
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Merchant, MerchantLimits
from guichet.domain.money import MIN_AMOUNT, Hundredths, parse_typed
from guichet.merchants import repository as merchants

MAX_RATE: Final = 100_000
#: Of a day, in hundredths: enough for any merchant, and far below what a database's integer holds.
_MAX_AMOUNT: Final = 10**15
#: The limits as the audit log names them.
_NAMES: Final[tuple[FactName, ...]] = ("rate_limit", "payment_limit", "daily_limit")


def read_rate(typed: str) -> int | None:
    """Requests a minute, 1 to MAX_RATE; None if it is no such number."""
    if not (typed.isascii() and typed.isdigit() and len(typed) <= 6):
        return None
    rate = int(typed)
    return rate if 1 <= rate <= MAX_RATE else None


def read_amount(typed: str) -> Hundredths | None:
    """A limit typed in the currency's unit, with or without spaces; None if it is no such amount."""
    amount = parse_typed(typed, 2)
    return Hundredths(amount) if amount is not None and MIN_AMOUNT <= amount <= _MAX_AMOUNT else None


async def set_limits(
    db: Database, clock: Clock, merchant_id: MerchantId, limits: MerchantLimits, actor: Actor, reason: str = ""
) -> Merchant | None:
    """The merchant with these limits, None among them for the common ones; None if there is no such merchant.

    Servers follow within a second, and a merchant's own rate of requests with its next request.
    """
    async with db.transaction() as tx:
        before = await merchants.lock(tx, merchant_id)
        if before is None:
            return None
        changed = await merchants.set_limits(tx, merchant_id, limits)
        old, new = asdict(before.limits), asdict(limits)
        names = [name for name in _NAMES if old[name] != new[name]]
        if names:
            act = Act(
                actor, "merchant.limits_changed", "merchant", str(merchant_id), merchant_id, reason,
                before={name: old[name] for name in names}, after={name: new[name] for name in names},
            )  # fmt: skip
            await audit_log.record(tx, act, clock.now())
    return changed
