"""Where the money is: what we have at providers and banks, and whose it is."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from guichet.db.engine import Database
from guichet.domain.money import CURRENCIES, Currency, Hundredths
from guichet.domain.posting_rules import (
    BANK,
    DISPUTED,
    FLOAT,
    HOLD,
    LATE_SUSPENSE,
    SUSPENSE,
    WALLET,
    float_account,
    wallet_of_float,
)
from guichet.treasury.balances import Total, Totals, totals

#: Owed to merchants, and held until somebody decides or is paid; every other account is ours.
_OWED: Final = frozenset({WALLET, SUSPENSE})
_HELD: Final = frozenset({HOLD, LATE_SUSPENSE, DISPUTED})


class Place(NamedTuple):
    """`account`: as the ledger names it; `what`: `wallet` or `bank`."""

    account: str
    what: str
    name: str
    wallet: str


@dataclass(slots=True)
class Position:
    """Of one currency, in hundredths. `wallets`: by provider account and its own wallet; `banks`: by name. These add up
    to `owed` (to merchants), `held` (refunds on their way, late and disputed money) and `ours`."""

    currency: Currency
    wallets: dict[tuple[str, str], Hundredths] = field(default_factory=dict)
    banks: dict[str, Hundredths] = field(default_factory=dict)
    owed: int = 0
    held: int = 0
    ours: int = 0

    @property
    def total(self) -> Hundredths:
        return Hundredths(sum(self.wallets.values()) + sum(self.banks.values()))

    def places(self) -> list[tuple[Place, Hundredths]]:
        wallets = [
            (Place(float_account(name, wallet, self.currency), "wallet", name, wallet), amount)
            for (name, wallet), amount in self.wallets.items()
        ]
        banks = [
            (Place(f"{BANK}{name}:{self.currency}", "bank", name, ""), amount) for name, amount in self.banks.items()
        ]
        return [*wallets, *banks]


async def positions(db: Database, places: Iterable[str] = ()) -> list[Position]:
    """By currency. `places`: places that are shown even if nothing was posted there. Cost: as `balances.totals`."""
    ledger = await totals(db)
    for place in places:
        currency = next(code for code in CURRENCIES if place.endswith(f":{code}"))
        ledger.setdefault((currency, place), Total())
    return _positions_of(ledger)


def _positions_of(ledger: Totals) -> list[Position]:
    by_currency: dict[Currency, Position] = {}
    for (currency, account), total in sorted(ledger.items()):
        position = by_currency.setdefault(currency, Position(currency))
        if account.startswith(FLOAT):
            position.wallets[wallet_of_float(account)] = total.held
        elif account.startswith(BANK):
            position.banks[account.split(":")[1]] = total.held
        elif account in _OWED:
            position.owed += total.owed
        elif account in _HELD:
            position.held += total.owed
        else:
            position.ours += total.owed
    return list(by_currency.values())
