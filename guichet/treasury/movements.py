"""Movements of our own money that people record. Each is one posting of the house merchant, in the transaction of its
row and of its entry in the audit log."""

from typing import Final, Literal

from msgspec import structs

from guichet.audit_log import entries as audit_log
from guichet.clock import Instant
from guichet.context import AppContext
from guichet.db.engine import Transaction
from guichet.domain.approvals import Arguments
from guichet.domain.audit_log import Act, Actor, ActRefused, Facts
from guichet.domain.ids import MerchantId
from guichet.domain.money import CURRENCIES, Currency, Hundredths
from guichet.domain.posting_rules import FLOAT, TREASURY_MOVED, Movement
from guichet.domain.refusals import Refusal
from guichet.domain.treasury import RECORDED_KINDS, STATEMENT, MovementStatus, TreasuryMovement, accounts_of, place
from guichet.ledger import postings
from guichet.merchants import repository as merchants
from guichet.providers.registry import SANDBOX, UNCONNECTED
from guichet.treasury import repository

#: Whatever a person types, `amount` is below this: a hundred thousand billion.
_MOST: Final = 10**16


def requested_movement(ctx: AppContext, reference: str, arguments: Arguments) -> TreasuryMovement:
    """The movement that a person asks for: `kind`, `currency`, `amount` in hundredths, places `from` and `to`, and
    whether it is only announced. Raises ActRefused."""
    kind = next((kind for kind in RECORDED_KINDS if kind == arguments.get("kind")), None)
    currency = next((code for code in CURRENCIES if code == arguments.get("currency")), None)
    if kind is None or currency is None:
        raise ActRefused(Refusal.TREASURY_KIND(kinds=", ".join(RECORDED_KINDS)))
    is_announced = arguments.get("announced") is True
    shrinks, grows = _place(ctx, arguments, "from", currency), _place(ctx, arguments, "to", currency)
    accounts = accounts_of(kind, shrinks, grows)
    if accounts is None or (is_announced and kind != "transfer"):
        raise ActRefused(Refusal.TREASURY_PLACES(kind=kind))
    now = ctx.clock.now()
    return TreasuryMovement(
        id=0,
        merchant_id=MerchantId(0),
        reference=reference,
        kind=kind,
        currency=currency,
        amount=amount_of(arguments),
        source=accounts[0],
        destination=accounts[1],
        status="announced" if is_announced else "posted",
        recorded_at=now,
        ended_at=None if is_announced else now,
    )


def is_statement(arguments: Arguments) -> bool:
    """Whether the person says what a statement shows, and not that something moved."""
    return arguments.get("kind") == STATEMENT


def stated_place(ctx: AppContext, arguments: Arguments) -> tuple[str, Currency]:
    """The place that a typed statement is about. Raises ActRefused."""
    currency = next((code for code in CURRENCIES if code == arguments.get("currency")), None)
    if currency is None or arguments.get("from") or arguments.get("announced"):
        raise ActRefused(Refusal.TREASURY_PLACES(kind=STATEMENT))
    place = _place(ctx, arguments, "to", currency)
    if place is None:
        raise ActRefused(Refusal.TREASURY_PLACES(kind=STATEMENT))
    return place, currency


def amount_of(arguments: Arguments) -> Hundredths:
    amount = arguments.get("amount")
    if not isinstance(amount, int) or not (amount > 0 or is_statement(arguments)) or amount >= _MOST:
        raise ActRefused(Refusal.TREASURY_AMOUNT())
    return Hundredths(amount)


def _place(ctx: AppContext, arguments: Arguments, side: Literal["from", "to"], currency: Currency) -> str | None:
    text = arguments.get(side)
    if not text:
        return None
    account = place(str(text), currency)
    name = account.split(":")[1] if account else ""
    known = [name for name in ctx.registry.names() if name not in (SANDBOX, UNCONNECTED)]
    if account is None or (account.startswith(FLOAT) and name not in known):
        raise ActRefused(Refusal.TREASURY_PLACE(place=str(text)))
    return account


async def record(ctx: AppContext, movement: TreasuryMovement, actor: Actor, evidence: str) -> TreasuryMovement:
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        house = await merchants.house_merchant(tx, ctx.vault, now)
        recorded = await repository.insert_new(tx, structs.replace(movement, merchant_id=house))
        if recorded is None:
            raise ActRefused(Refusal.JUST_DECIDED())
        await post(tx, recorded, now)
        await audit_log.record(tx, _act("treasury.recorded", recorded, actor, evidence), now)
    return recorded


async def end(ctx: AppContext, reference: str, status: MovementStatus, actor: Actor, evidence: str) -> TreasuryMovement:
    """An announced movement arrived (`posted`), or never will (`cancelled`). Raises ActRefused."""
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        ended = await repository.end(tx, reference, status, now)
        if ended is None:
            raise ActRefused(Refusal.NOT_ANNOUNCED(reference=reference))
        await post(tx, ended, now)
        await audit_log.record(tx, _act("treasury.ended", ended, actor, evidence), now)
    return ended


async def post(tx: Transaction, movement: TreasuryMovement, now: Instant) -> None:
    """What is announced posts nothing yet."""
    if movement.status == "posted":
        posted = Movement(
            merchant_id=movement.merchant_id,
            env="live",
            currency=movement.currency,
            cause=TREASURY_MOVED,
            subject_id=movement.id,
            entries=movement.entries,
            created_at=now,
        )
        await postings.post(tx, [posted])


def _act(action: str, movement: TreasuryMovement, actor: Actor, evidence: str) -> Act:
    facts: Facts = {
        "kind": movement.kind,
        "currency": movement.currency,
        "amount": movement.amount,
        "from": movement.destination,
        "to": movement.source,
        "status": movement.status,
    }
    return Act(actor, action, "treasury", movement.reference, movement.merchant_id, evidence, after=facts)
