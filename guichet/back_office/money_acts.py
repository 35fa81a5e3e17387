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
from guichet.domain.approvals import ActRequest
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
from guichet.refunds import payee
from guichet.refunds import repository as refund_repository
from guichet.settings import Settings
from guichet.treasury import differences, movements


async def with_present_state(ctx: AppContext, act_request: ActRequest) -> ActRequest:
    """The act with what must still be the same when it is done."""
    if act_request.act != "account.confirm":
        return act_request
    subject = await _subject(ctx.db, act_request)
    return structs.replace(act_request, arguments=account_confirmation.arguments(ctx, subject))


async def check(ctx: AppContext, act_request: ActRequest) -> MerchantId:
    """The merchant that the act is about. Raises ActRefused when it could not be done now; no provider is asked."""
    match act_request.act:
        case "payment.settle" | "refund.settle" | "account.confirm":
            subject = await _subject(ctx.db, act_request)
            if act_request.act == "account.confirm":
                account_confirmation.check(ctx, subject, act_request)
            else:
                manual_settlement.check(subject)
            return subject.merchant_id
        case "refund.confirm_payee":
            refund = await _refund(ctx.db, act_request)
            await payee.check(ctx, refund, str(act_request.arguments.get("phone")))
            return refund.merchant_id
        case "late_money.resolve":
            late, decision = await _late(ctx.db, act_request)
            late_decisions.check(late, decision)
            return late.merchant_id
        case "dispute.resolve":
            return (await _dispute(ctx.db, act_request))[0].merchant_id
        case "wallet.reopen":
            merchant_id, currency = _wallet(act_request)
            if await wallets.wallet_status(ctx.db, merchant_id, "live", currency) == ACTIVE:
                raise ActRefused(Refusal.WALLET_ACTIVE(currency=currency, merchant=merchant_id))
            return merchant_id
        case "treasury.record":
            if movements.is_statement(act_request.arguments):
                movements.stated_place(ctx, act_request.arguments)
            else:
                movements.requested_movement(ctx, _reference(act_request), act_request.arguments)
            movements.amount_of(act_request.arguments)
            async with ctx.db.transaction() as tx:
                return await merchant_repository.house_merchant(tx, ctx.vault, ctx.clock.now())
        case "staff.add" | "staff.restore" | "team.give_role":
            raise ValueError(act_request.act)  # `accounts/access_acts.py` has them.


def needs_two_people(settings: Settings, act_request: ActRequest) -> bool:
    """Whether another person must approve it: always, but for small movements of our own money."""
    if act_request.act != "treasury.record" or movements.is_statement(act_request.arguments):
        return True
    return movements.amount_of(act_request.arguments) > settings.treasury_one_person_below * 100


async def perform(ctx: AppContext, act_request: ActRequest, actor: Actor) -> None:
    """Does it. `actor` carries the approval, which the transaction of the act uses up. Raises ActRefused."""
    match act_request.act:
        case "payment.settle" | "refund.settle":
            await _settle(ctx, act_request, actor)
        case "refund.confirm_payee":
            number = str(act_request.arguments.get("phone"))
            await payee.confirm(ctx, await _refund(ctx.db, act_request), number, actor, act_request.reason)
        case "late_money.resolve":
            late, decision = await _late(ctx.db, act_request)
            await late_decisions.resolve(ctx, late, decision, actor, act_request.reason)
        case "dispute.resolve":
            dispute, bearer = await _dispute(ctx.db, act_request)
            await dispute_decisions.resolve(ctx, dispute, bearer, actor, act_request.reason)
        case "wallet.reopen":
            await merchants.change_status(ctx.db, ctx.clock, *_wallet(act_request), ACTIVE, actor, act_request.reason)
        case "treasury.record":
            await _record_treasury(ctx, act_request, actor)
        case "account.confirm":
            await account_confirmation.confirm(ctx, await _subject(ctx.db, act_request), act_request, actor)
        case "staff.add" | "staff.restore" | "team.give_role":
            raise ValueError(act_request.act)  # `accounts/access_acts.py` has them.


async def _settle(ctx: AppContext, act_request: ActRequest, actor: Actor) -> None:
    decision = Decision(
        succeeded=act_request.arguments.get("succeeded") is True,
        evidence=act_request.reason,
        actor=actor,
        override=act_request.arguments.get("override") is True,
    )
    await manual_settlement.settle_by_hand(ctx, await _subject(ctx.db, act_request), decision)


async def _record_treasury(ctx: AppContext, act_request: ActRequest, actor: Actor) -> None:
    if movements.is_statement(act_request.arguments):
        place, currency = movements.stated_place(ctx, act_request.arguments)
        amount = movements.amount_of(act_request.arguments)
        await differences.record_statement(ctx, place, currency, amount, actor, act_request.reason)
        return
    movement = movements.requested_movement(ctx, _reference(act_request), act_request.arguments)
    await movements.record(ctx, movement, actor, act_request.reason)


async def _subject(db: Database, act_request: ActRequest) -> Payment | Refund:
    if act_request.act == "refund.settle":
        return await _refund(db, act_request)
    payment = await repository.find(db, _reference(act_request))
    if payment is None and act_request.act == "account.confirm":
        return await _refund(db, act_request)
    if payment is None:
        raise ActRefused(Refusal.NO_PAYMENT(subject=act_request.subject))
    return payment


async def _refund(db: Database, act_request: ActRequest) -> Refund:
    refund = await refund_repository.find(db, _reference(act_request))
    if refund is None:
        raise ActRefused(Refusal.NO_REFUND(subject=act_request.subject))
    return refund


async def _late(db: Database, act_request: ActRequest) -> tuple[LateResult, LateDecision]:
    late = await late_decisions.find(db, _reference(act_request))
    decision = next((name for name in get_args(LateDecision) if name == act_request.arguments.get("to")), None)
    if decision is None:
        raise ActRefused(Refusal.DECIDE_ONE(decisions=", ".join(get_args(LateDecision))))
    return late, decision


async def _dispute(db: Database, act_request: ActRequest) -> tuple[Dispute, Bearer]:
    dispute = await dispute_repository.find(db, _reference(act_request))
    if dispute is None:
        raise ActRefused(Refusal.NO_DISPUTE(subject=act_request.subject))
    bearer = next((bearer for bearer in BEARERS if bearer == act_request.arguments.get("from")), None)
    if bearer is None:
        raise ActRefused(Refusal.BEAR_ONE(bearers=", ".join(BEARERS)))
    dispute_decisions.check(dispute, bearer)
    return dispute, bearer


def _reference(act_request: ActRequest) -> str:
    """A column of identifiers refuses other text on PostgreSQL."""
    reference = parse_reference(act_request.subject)
    if reference is None:
        raise ActRefused(Refusal.NO_REFERENCE(subject=act_request.subject))
    return reference


def wallet_subject(merchant_id: MerchantId, currency: Currency) -> str:
    """How a request names a live wallet."""
    return f"{merchant_id}/{currency}"


def _wallet(act_request: ActRequest) -> tuple[MerchantId, Currency]:
    merchant, _, text = act_request.subject.partition("/")
    currency = next((currency for currency in CURRENCIES if currency == text), None)
    if currency is None or not (merchant.isascii() and merchant.isdigit()):
        raise ActRefused(Refusal.NO_WALLET(subject=act_request.subject))
    return MerchantId(int(merchant)), currency
