"""What every flow needs, built once by `bootstrap.py`."""

import asyncio
from dataclasses import dataclass, field

import msgspec
from limits.aio.storage import RedisStorage

from guichet.clock import Clock
from guichet.db.batching import Batching
from guichet.db.engine import Database
from guichet.domain.money import round_to_currency
from guichet.domain.payments import Payment, Refund
from guichet.domain.settlement import Settlement
from guichet.merchants.catalogue import Catalogues
from guichet.merchants.vault import Vault
from guichet.providers.base import Charge, Reversal
from guichet.providers.registry import Registry
from guichet.settings import Settings


@dataclass(frozen=True, slots=True)
class WakeUps:
    """Tells the worker of this process, right after a commit, that there is something to do."""

    polling: asyncio.Event = field(default_factory=asyncio.Event)
    refunds: asyncio.Event = field(default_factory=asyncio.Event)
    deliveries: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class AppContext:
    """`guichet.bootstrap.service` builds the only one of a process."""

    settings: Settings
    db: Database
    clock: Clock
    vault: Vault
    registry: Registry
    catalogues: Catalogues
    #: Outcomes of payments on their way to the database.
    settlements: Batching[Settlement, Payment]
    #: Rate limits across processes; None when each counts for itself.
    shared_counters: RedisStorage | None = None
    wakeups: WakeUps = field(default_factory=WakeUps)


def charge_for(ctx: AppContext, payment: Payment, otp: str | None = None) -> Charge:
    """The debit of a payment as its connector sees it: the total, rounded to what the currency has (D27)."""
    return Charge(
        reference=payment.reference,
        operator=payment.operator,
        amount=round_to_currency(payment.total_amount, payment.currency),
        currency=payment.currency,
        description=payment.description,
        created_at=payment.created_at,
        phone_number=payment.phone_number,
        otp=otp,
        firstname=payment.firstname,
        lastname=payment.lastname,
        email=payment.email,
        country=payment.country,
        return_url=payment.return_url,
        notify_url=_notify_url(ctx, payment.connection, payment.reference),
        provider_reference=payment.provider_ref,
        provider_data=_memo(payment.provider_memo),
    )


def reversal_for(ctx: AppContext, refund: Refund, payment: Payment) -> Reversal:
    charge = charge_for(ctx, payment)
    return Reversal(
        reference=refund.reference,
        charge=msgspec.structs.replace(charge, notify_url=_notify_url(ctx, refund.connection, refund.reference)),
        amount=charge.amount,
        currency=refund.currency,
        collected_here=refund.connection == payment.connection,
        provider_reference=refund.provider_ref,
        provider_data=_memo(refund.provider_memo),
        sent_at=refund.sent_at,
    )


def _notify_url(ctx: AppContext, connection: str | None, reference: str) -> str | None:
    return f"{ctx.settings.public_url}/providers/{connection}/callback/{reference}" if connection else None


def _memo(text: str | None) -> dict[str, str]:
    return {} if text is None else msgspec.json.decode(text, type=dict[str, str])
