"""What the providers really moved: the simulator's own file, read without the simulator."""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple

from guichet.domain.payments import Payment, Refund, request_reference
from guichet.providers.feexpay.history import network_name
from guichet.providers.orange.provider import order_id

_TRANSACTIONS: Final = (
    "SELECT t.provider, t.operator, strftime('%Y-%m-%d', t.created_at / 1000000, 'unixepoch'), t.kind, t.client_ref,"
    " t.phone, t.amount, t.currency, t.state, t.scenario, b.transaction_id IS NOT NULL"
    " FROM transactions t LEFT JOIN books b ON b.transaction_id = t.id ORDER BY t.id"
)
#: Rows of a network, kind, status and day in FeexPay's history (docs/providers/feexpay.md, "Other calls"). What has no
#: documented name there, such as a card, can only be asked for among all networks.
_MOST_LISTED: Final = 500


class ProviderTransaction(NamedTuple):
    """A row of the simulator. `moved`: the money moved; what the provider states may differ. `amount` in hundredths."""

    provider: str
    operator: str
    day: str
    kind: Literal["debit", "credit"]
    reference: str | None
    phone: str | None
    amount: int
    currency: str
    state: str
    scenario: str
    moved: bool


@dataclass
class ProviderBooks:
    """Transactions by the payment that they belong to (its reference), and those that belong to none of ours."""

    of_payment: dict[str, list[ProviderTransaction]]
    unknown: list[ProviderTransaction]
    #: Transactions of a provider, network (None: of all), day, kind and state.
    listed: Counter[tuple[str | None, ...]] = field(default_factory=Counter)

    def may_be_unlisted(self, transaction: ProviderTransaction) -> bool:
        """Whether FeexPay's history may lack this transaction, whatever it is asked."""
        return transaction.provider == "feexpay" and self.listed[_lists_of(transaction)[0]] > _MOST_LISTED

    def debits(self, payment: str) -> list[ProviderTransaction]:
        return [each for each in self.of_payment.get(payment, ()) if each.kind == "debit"]

    def credits(self, payment: str) -> list[ProviderTransaction]:
        return [each for each in self.of_payment.get(payment, ()) if each.kind == "credit"]


def read_provider_books(
    simulator_db: Path, payments: Iterable[Payment], refunds: Iterable[Refund], returns: Iterable[tuple[str, str]]
) -> ProviderBooks:
    """`returns`: the reference under which late money was given back, and its payment's. One pass over the file."""
    owners, by_number = _references(payments, refunds, returns)
    books = ProviderBooks(defaultdict(list), [])
    with sqlite3.connect(f"file:{simulator_db}?mode=ro", uri=True) as db:
        for row in db.execute(_TRANSACTIONS):
            transaction = ProviderTransaction(*row)
            books.listed.update(set(_lists_of(transaction)))
            owner = owners.get(transaction.reference or "")
            if owner is None and transaction.reference is None:
                owner = by_number.get((transaction.phone, transaction.amount))
                # Whose customer was anonymised has no number any more; each order has an amount of its own.
                owner = owner or by_number.get((None, transaction.amount))
            if owner is None:
                books.unknown.append(transaction)
            else:
                books.of_payment[owner].append(transaction)
    return books


def _lists_of(transaction: ProviderTransaction) -> tuple[tuple[str | None, ...], ...]:
    """The narrowest list that a question can be about, and the one of all networks."""
    rest = transaction.day, transaction.kind, transaction.state
    return (transaction.provider, network_name(transaction.operator), *rest), (transaction.provider, None, *rest)


def _references(
    payments: Iterable[Payment], refunds: Iterable[Refund], returns: Iterable[tuple[str, str]]
) -> tuple[dict[str, str], dict[tuple[str | None, int], str]]:
    """Payments by every reference that a provider may know, and by number and amount for Coris, which knows none."""
    owners: dict[str, str] = dict(returns)
    by_number: dict[tuple[str | None, int], str] = {}
    for payment in payments:
        owners[payment.reference] = payment.reference
        owners[order_id(payment.reference)] = payment.reference
        if payment.operator == "coris":
            by_number[payment.phone_number, (payment.total_amount + 50) // 100 * 100] = payment.reference
    for refund in refunds:
        for number in range(refund.request_number + 1):
            owners[request_reference(refund.reference, number)] = refund.payment_reference
    return owners, by_number
