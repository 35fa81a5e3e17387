"""The acts of the staff that move money, as a request describes them (`domain/approvals.py`): whether one is possible,
and how it is done once a second person approves it."""

from typing import get_args

from msgspec import structs

from guichet.back_office import account_confirmation, manual_settlement, merchants
from guichet.back_office.manual_settlement import Decision
from guichet.context import AppContext
from guichet.db.engine import Database
from guichet.db.references import parse_reference
from guichet.disputes import decisions as dispute_decisions
from guichet.disputes import repository as dispute_repository
from guichet.domain.approvals import WantedAct
from guichet.domain.audit_log import Actor, ActRefused
from guichet.domain.disputes import BEARERS, Bearer, Dispute
from guichet.domain.ids import MerchantId
from guichet.domain.late_results import LateResult
from guichet.domain.money import CURRENCIES, Currency
from guichet.domain.payments import Payment, Refund
from guichet.domain.posting_rules import ACTIVE
from guichet.domain.refusals import Refusal
from guichet.late_money import decisions as late_decisions
from guichet.late_money.decisions import Decision as LateDecision
from guichet.ledger import wallets
from guichet.merchants import repository as merchant_repository
from guichet.payments import repository
from guichet.refunds import repository as refund_repository
from guichet.refunds import request
from guichet.settings import Settings
from guichet.treasury import differences, movements


async def with_present_state(ctx: AppContext, wanted: WantedAct) -> WantedAct:
    """The act with what must still be the same when it is done."""
    if wanted.act != "account.confirm":
        return wanted
    return structs.replace(wanted, arguments=account_confirmation.arguments(ctx, await _subject(ctx.db, wanted)))


async def check(ctx: AppContext, wanted: WantedAct) -> MerchantId:
    """The merchant that the act is about. Raises ActRefused when it could not be done now; no provider is asked."""
    match wanted.act:
        case "payment.settle" | "refund.settle" | "account.confirm":
            subject = await _subject(ctx.db, wanted)
            if wanted.act == "account.confirm":
                account_confirmation.check(ctx, subject, wanted)
            else:
                manual_settlement.check(subject)
            return subject.merchant_id
        case "refund.confirm_payee":
            refund = await _refund(ctx.db, wanted)
            await request.check(ctx, refund, str(wanted.arguments.get("phone")))
            return refund.merchant_id
        case "late_money.resolve":
            late, decision = await _late(ctx.db, wanted)
            late_decisions.check(late, decision)
            return late.merchant_id
        case "dispute.resolve":
            return (await _dispute(ctx.db, wanted))[0].merchant_id
        case "wallet.reopen":
            merchant_id, currency = _wallet(wanted)
            if await wallets.wallet_status(ctx.db, merchant_id, "live", currency) == ACTIVE:
                raise ActRefused(Refusal.WALLET_ACTIVE(currency=currency, merchant=merchant_id))
            return merchant_id
        case "treasury.record":
            if movements.is_statement(wanted.arguments):
                movements.stated_place(ctx, wanted.arguments)
            else:
                movements.requested_movement(ctx, _reference(wanted), wanted.arguments)
            movements.amount_of(wanted.arguments)
            async with ctx.db.transaction() as tx:
                return await merchant_repository.house(tx, ctx.vault, ctx.clock.now())
        case "staff.add" | "staff.restore" | "team.give_role":
            raise ValueError(wanted.act)  # `accounts/access_acts.py` has them.


def needs_two_people(settings: Settings, wanted: WantedAct) -> bool:
    """Whether another person must approve it: always, but for small movements of our own money."""
    if wanted.act != "treasury.record" or movements.is_statement(wanted.arguments):
        return True
    return movements.amount_of(wanted.arguments) > settings.treasury_one_person_below * 100


async def perform(ctx: AppContext, wanted: WantedAct, actor: Actor) -> None:
    """Does it. `actor` carries the approval, which the transaction of the act uses up. Raises ActRefused."""
    match wanted.act:
        case "payment.settle" | "refund.settle":
            await _settle(ctx, wanted, actor)
        case "refund.confirm_payee":
            number = str(wanted.arguments.get("phone"))
            await request.confirm_payee(ctx, await _refund(ctx.db, wanted), number, actor, wanted.reason)
        case "late_money.resolve":
            late, decision = await _late(ctx.db, wanted)
            await late_decisions.resolve(ctx, late, decision, actor, wanted.reason)
        case "dispute.resolve":
            dispute, bearer = await _dispute(ctx.db, wanted)
            await dispute_decisions.resolve(ctx, dispute, bearer, actor, wanted.reason)
        case "wallet.reopen":
            await merchants.change_status(ctx.db, ctx.clock, *_wallet(wanted), ACTIVE, actor, wanted.reason)
        case "treasury.record":
            await _record_treasury(ctx, wanted, actor)
        case "account.confirm":
            await account_confirmation.confirm(ctx, await _subject(ctx.db, wanted), wanted, actor)
        case "staff.add" | "staff.restore" | "team.give_role":
            raise ValueError(wanted.act)  # `accounts/access_acts.py` has them.


async def _settle(ctx: AppContext, wanted: WantedAct, actor: Actor) -> None:
    decision = Decision(
        succeeded=wanted.arguments.get("succeeded") is True,
        evidence=wanted.reason,
        actor=actor,
        override=wanted.arguments.get("override") is True,
    )
    await manual_settlement.settle_by_hand(ctx, await _subject(ctx.db, wanted), decision)


async def _record_treasury(ctx: AppContext, wanted: WantedAct, actor: Actor) -> None:
    if movements.is_statement(wanted.arguments):
        place, currency = movements.stated_place(ctx, wanted.arguments)
        stated = movements.amount_of(wanted.arguments)
        await differences.record_statement(ctx, place, currency, stated, actor, wanted.reason)
        return
    movement = movements.requested_movement(ctx, _reference(wanted), wanted.arguments)
    await movements.record(ctx, movement, actor, wanted.reason)


async def _subject(db: Database, wanted: WantedAct) -> Payment | Refund:
    if wanted.act == "refund.settle":
        return await _refund(db, wanted)
    payment = await repository.find(db, _reference(wanted))
    if payment is None and wanted.act == "account.confirm":
        return await _refund(db, wanted)
    if payment is None:
        raise ActRefused(Refusal.NO_PAYMENT(subject=wanted.subject))
    return payment


async def _refund(db: Database, wanted: WantedAct) -> Refund:
    refund = await refund_repository.find(db, _reference(wanted))
    if refund is None:
        raise ActRefused(Refusal.NO_REFUND(subject=wanted.subject))
    return refund


async def _late(db: Database, wanted: WantedAct) -> tuple[LateResult, LateDecision]:
    late = await late_decisions.find(db, _reference(wanted))
    decision = next((each for each in get_args(LateDecision) if each == wanted.arguments.get("to")), None)
    if decision is None:
        raise ActRefused(Refusal.DECIDE_ONE(decisions=", ".join(get_args(LateDecision))))
    return late, decision


async def _dispute(db: Database, wanted: WantedAct) -> tuple[Dispute, Bearer]:
    dispute = await dispute_repository.find(db, _reference(wanted))
    if dispute is None:
        raise ActRefused(Refusal.NO_DISPUTE(subject=wanted.subject))
    bearer = next((each for each in BEARERS if each == wanted.arguments.get("from")), None)
    if bearer is None:
        raise ActRefused(Refusal.BEAR_ONE(bearers=", ".join(BEARERS)))
    dispute_decisions.check(dispute, bearer)
    return dispute, bearer


def _reference(wanted: WantedAct) -> str:
    """A column of identifiers refuses other text on PostgreSQL."""
    found = parse_reference(wanted.subject)
    if found is None:
        raise ActRefused(Refusal.NO_REFERENCE(subject=wanted.subject))
    return found


def wallet_subject(merchant_id: MerchantId, currency: Currency) -> str:
    """How a request names a live wallet."""
    return f"{merchant_id}/{currency}"


def _wallet(wanted: WantedAct) -> tuple[MerchantId, Currency]:
    merchant, _, text = wanted.subject.partition("/")
    currency = next((each for each in CURRENCIES if each == text), None)
    if currency is None or not (merchant.isascii() and merchant.isdigit()):
        raise ActRefused(Refusal.NO_WALLET(subject=wanted.subject))
    return MerchantId(int(merchant)), currency
