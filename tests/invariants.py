"""What must be true of the books whatever happened, read from the tables (docs/architecture.md, "Invariants")."""

from collections import Counter, defaultdict
from typing import Any

import msgspec
from sqlalchemy import select

from guichet.db.engine import Database
from guichet.db.tables import (
    disputes,
    events,
    late_results,
    payments,
    postings,
    refunds,
    treasury_movements,
    wallet_entries,
    webhook_deliveries,
)
from guichet.domain.disputes import Dispute
from guichet.domain.events import MAX_ATTEMPTS, Delivery, StoredEvent
from guichet.domain.ids import MerchantId, PaymentId, RefundId
from guichet.domain.late_results import LateResult
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency, round_to_currency
from guichet.domain.payments import Payment, Refund
from guichet.domain.posting_rules import FLOAT, HOLD, MANUAL_SETTLEMENT, PROVIDER_FEES, SUSPENSE, WALLET
from guichet.domain.treasury import TreasuryMovement
from guichet.ledger import wallets

#: (merchant, env, currency)
Wallet = tuple[MerchantId, Environment, Currency]


async def check_books(db: Database, *, events_queued: bool = False) -> None:
    """Checks every money invariant.

    With `events_queued` also that each transition has exactly one event: every merchant must have had an endpoint all
    along.
    """
    paid = {row.id: row for row in [Payment(*row) for row in await db.scan(select(payments))]}
    returned = {row.id: row for row in [Refund(*row) for row in await db.scan(select(refunds))]}
    moves = await db.scan(select(postings))
    accounts = _accounts(moves)
    await _wallets_are_their_postings(db, accounts)
    _each_success_is_credited_once(paid, moves)
    _each_refund_is_booked_once(paid, returned, moves)
    late = [LateResult(*row) for row in await db.scan(select(late_results))]
    taken_back = [
        Dispute(*row) for row in await db.scan(select(disputes).where(disputes.c.status != "won", disputes.c.taken))
    ]
    recorded = [TreasuryMovement(*row) for row in await db.scan(select(treasury_movements))]
    _floats_agree(paid, returned, accounts, late, taken_back, _provider_fees(moves), recorded)
    await _suspense_is_what_waits(db, accounts)
    sent = [Delivery(*row) for row in await db.scan(select(webhook_deliveries))]
    assert all(delivery.attempts <= MAX_ATTEMPTS for delivery in sent)
    await _bodies_say_what_they_are(db, sent)
    if events_queued:
        fought = [Dispute(*row) for row in await db.scan(select(disputes))]
        _each_transition_is_told_once(paid, returned, fought, sent)


def _accounts(moves: list[Any]) -> dict[Wallet, Counter[str]]:
    """Balances by account; every posting takes as much as it gives, so each wallet's accounts add up to zero."""
    accounts: dict[Wallet, Counter[str]] = defaultdict(Counter)
    for _, merchant_id, env, currency, _, _, _, source, destination, amount, _ in moves:
        assert amount > 0
        accounts[merchant_id, env, currency][source] -= amount
        accounts[merchant_id, env, currency][destination] += amount
    for balances in accounts.values():
        assert sum(balances.values()) == 0
    return accounts


async def _wallets_are_their_postings(db: Database, accounts: dict[Wallet, Counter[str]]) -> None:
    for (merchant_id, env, currency), balances in accounts.items():
        wallet = await wallets.wallet(db, merchant_id, env, currency)
        assert (wallet.balance if wallet else 0) == balances[WALLET], (merchant_id, env, currency)
        assert balances[WALLET] >= 0, "a wallet is never overdrawn"
        assert balances[HOLD] >= 0
        assert balances[SUSPENSE] >= 0


def _legs(moves: list[Any], cause: str) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = defaultdict(list)
    for move in moves:
        if move[4] == cause:
            found[move[5]].append(move)
    return found


def _each_success_is_credited_once(paid: dict[PaymentId, Payment], moves: list[Any]) -> None:
    collected = _legs(moves, "payment.succeeded")
    assert set(collected) == {row.id for row in paid.values() if row.status in ("succeeded", "refunded")}
    for payment_id, legs in collected.items():
        payment = paid[payment_id]
        amounts = {leg[6]: leg[9] for leg in legs}
        assert len(amounts) == len(legs)
        assert amounts["amount"] == payment.amount
        assert amounts.get("fee", 0) == payment.fee_amount
        for leg in legs:
            assert (leg[1], leg[2], leg[3]) == (payment.merchant_id, payment.env, payment.currency)


def _each_refund_is_booked_once(
    paid: dict[PaymentId, Payment], returned: dict[RefundId, Refund], moves: list[Any]
) -> None:
    holds, posted, released = (_legs(moves, f"refund.{what}") for what in ("requested", "succeeded", "failed"))
    assert set(holds) == {row.id for row in returned.values() if row.held}
    assert set(posted) == {row.id for row in returned.values() if row.status == "succeeded"}
    assert set(released) == {row.id for row in returned.values() if row.status == "failed" and row.held}
    assert len({row.payment_id for row in returned.values()}) == len(returned), "one refund per payment, ever"
    for refund in returned.values():
        payment = paid[refund.payment_id]
        assert refund.amount == payment.total_amount
        assert (payment.status == "refunded") == (refund.status == "succeeded")
        assert refund.env == payment.env
    refunded = {row.payment_id for row in returned.values() if row.status == "succeeded"}
    assert refunded == {row.id for row in paid.values() if row.status == "refunded"}


def _provider_fees(moves: list[Any]) -> dict[Wallet, Counter[str]]:
    """What was kept as its fee, by float; such postings are live and touch no other account."""
    kept: dict[Wallet, Counter[str]] = defaultdict(Counter)
    for _, merchant_id, env, currency, cause, _, _, source, destination, amount, _ in moves:
        if cause.endswith(".provider_fee"):
            assert env == "live"
            [account] = {source, destination} - {PROVIDER_FEES}
            kept[merchant_id, env, currency][account] += amount if source == PROVIDER_FEES else -amount
    return kept


def _floats_agree(
    paid: dict[PaymentId, Payment],
    returned: dict[RefundId, Refund],
    accounts: dict[Wallet, Counter[str]],
    late: list[LateResult],
    taken_back: list[Dispute],
    provider_fees: dict[Wallet, Counter[str]],
    recorded: list[TreasuryMovement],
) -> None:
    """What we have with each provider account is what it took, less what it gave back, in amounts it can move (D27);
    also what it moved after the end was told, less what a bank took back and its own fees."""
    owed: dict[Wallet, Counter[str]] = defaultdict(Counter)
    for dispute in taken_back:
        owed[dispute.merchant_id, dispute.env, dispute.currency][dispute.provider_account] += dispute.amount
    for each in late:
        about_refund = each.subject_type == "refund"
        payment = paid[returned[RefundId(each.subject_id)].payment_id if about_refund else PaymentId(each.subject_id)]
        towards_us = {"found": 1, "returning": 1, "credited": 1, "receivable": -1, "paid": -1}.get(each.stage, 0)
        if about_refund and each.return_reference is not None:  # A failed refund that is made good, from the wallet.
            towards_us = -1 if each.stage == "returned" else 0
        moved = round_to_currency(payment.total_amount, payment.currency)
        owed[each.merchant_id, each.env, each.currency][each.provider_account] -= towards_us * moved
    _add_recorded(owed, recorded)
    for row in paid.values():
        moved = round_to_currency(row.total_amount, row.currency)
        if row.status in ("succeeded", "refunded"):
            owed[row.merchant_id, row.env, row.currency][row.provider_account or ""] -= moved
    for refund in returned.values():
        if refund.status == "succeeded":
            moved = round_to_currency(refund.amount, refund.currency)
            owed[refund.merchant_id, refund.env, refund.currency][refund.provider_account or ""] += moved
    for wallet, balances in accounts.items():
        if balances[MANUAL_SETTLEMENT]:  # People overrode a provider: the audit compares that with the audit log.
            continue
        for name, charged in provider_fees[wallet].items():
            owed[wallet][name.split(":")[1]] += charged
        found: Counter[str] = Counter()
        for name, amount in balances.items():
            if name.startswith(FLOAT):
                assert name.endswith(f":{wallet[2]}"), "a float is of the currency that moved"
                found[name.split(":")[1]] += amount
        assert found == {name: amount for name, amount in owed[wallet].items() if name in found}, wallet
        held = sum(
            paid[row.payment_id].amount
            for row in returned.values()
            if row.status == "pending" and row.held and (row.merchant_id, row.env, row.currency) == wallet
        )
        assert balances[HOLD] == held


def _add_recorded(owed: dict[Wallet, Counter[str]], recorded: list[TreasuryMovement]) -> None:
    for movement in recorded:
        for account, sign in ((movement.destination, 1), (movement.source, -1)):
            if movement.status == "posted" and account.startswith(FLOAT):
                owed[movement.merchant_id, "live", movement.currency][account.split(":")[1]] += sign * movement.amount


async def _suspense_is_what_waits(db: Database, accounts: dict[Wallet, Counter[str]]) -> None:
    waiting: Counter[Wallet] = Counter()
    for _, merchant_id, env, currency, amount, _, suspended, _ in await db.scan(select(wallet_entries)):
        assert env == "live" or not suspended
        waiting[merchant_id, env, currency] += amount if suspended else 0
    for wallet, balances in accounts.items():
        assert balances[SUSPENSE] == waiting[wallet]


async def _bodies_say_what_they_are(db: Database, sent: list[Delivery]) -> None:
    happened = {event.id: event for event in await stored_events(db)}
    for event in happened.values():
        body = msgspec.json.decode(event.body)
        assert (body["id"], body["event"]) == (event.reference, event.event)
        assert body["livemode"] == (event.env == "live")
    for delivery in sent:
        event = happened[delivery.id]
        assert (delivery.reference, delivery.event, delivery.env) == (event.reference, event.event, event.env)
        assert (delivery.merchant_id, delivery.payment_id) == (event.merchant_id, event.payment_id)


async def stored_events(db: Database) -> list[StoredEvent]:
    columns = [events.c[name] for name in StoredEvent.__struct_fields__]
    return [StoredEvent(*row) for row in await db.scan(select(*columns).order_by(events.c.id))]


def _each_transition_is_told_once(
    paid: dict[PaymentId, Payment], returned: dict[RefundId, Refund], fought: list[Dispute], sent: list[Delivery]
) -> None:
    events_queued = Counter((row.payment_id, row.event) for row in sent if row.payment_id is not None)
    assert set(events_queued.values()) <= {1}
    expected: set[tuple[int, str]] = set()
    for payment in paid.values():
        if payment.status in ("succeeded", "refunded"):
            expected.add((payment.id, "payment.succeeded"))
        if payment.status == "refunded":
            expected.add((payment.id, "payment.refunded"))
    for refund in returned.values():
        if refund.status != "pending":
            expected.add((refund.payment_id, f"refund.{refund.status}"))
    for dispute in fought:
        if dispute.payment_id is None or not dispute.taken:
            continue  # It is nobody's, or a person decides first.
        expected |= {
            (dispute.payment_id, f"dispute.{told}") for told in {"opened", dispute.status} - {"open", "prevented"}
        }
    # A failure at initiation was stated in the answer and has no event (D20); the others have one.
    failures = {(payment_id, event) for payment_id, event in events_queued if event == "payment.failed"}
    assert {payment_id for payment_id, _ in failures} <= {row.id for row in paid.values() if row.status == "failed"}
    assert set(events_queued) - failures == expected
