"""What the simulated providers charge their client for a transaction; statements and balances show it."""

from typing import Final

from guichet_simulator.models import SUCCEEDED, Transaction

#: Percent of the amount, by provider and kind; providers that are not named charge nothing that they show.
_PERCENT: Final = {("wave", "debit"): 1, ("pawapay", "debit"): 2, ("pawapay", "credit"): 1}
_WHOLE: Final = 100


def fee(tx: Transaction) -> int:
    """Hundredths, rounded to whole units of the currency; nothing for a transaction that did not succeed."""
    percent = _PERCENT.get((tx.provider, tx.kind), 0) if tx.state == SUCCEEDED else 0
    return (tx.amount * percent // 100 + _WHOLE // 2) // _WHOLE * _WHOLE


def balance_change(tx: Transaction) -> int:
    """Hundredths that a transaction added to the client's balance."""
    return (tx.amount if tx.kind == "debit" else -tx.amount) - fee(tx)
