"""How the providers' answers become balances of ours with them (docs/providers, "Other calls" of each page)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from guichet.domain.money import DECIMALS, Hundredths
from guichet.providers.base import Unknown
from guichet.providers.capabilities import FloatBalance
from guichet.providers.shared.client import CallResult, ProviderResponse
from guichet.providers.shared.fields import hundredths, text_or_none
from guichet.providers.shared.results import as_unknown

Body = Mapping[str, Any]


def read_balances(
    result: CallResult, read: Callable[[Body], Iterable[FloatBalance | None]]
) -> list[FloatBalance] | Unknown:
    """The balances in a 2xx response. `read` finds them in its object, None for each one that is unreadable."""
    if not isinstance(result, ProviderResponse) or not result.ok:
        return as_unknown(result)
    found = list(read(result.ok_object()))
    readable = [balance for balance in found if balance is not None]
    return readable if len(readable) == len(found) else Unknown(result.raw)


def mtn_balance(body: Body, product: str) -> list[FloatBalance | None]:
    return [_balance(product, hundredths(body.get("availableBalance")), body.get("currency"))]


def wave_balance(body: Body) -> list[FloatBalance | None]:
    return [_balance("", hundredths(body.get("amount")), body.get("currency"))]


def pawapay_balances(body: Body) -> list[FloatBalance | None]:
    """One for each country; a wallet that serves one provider only names it."""
    return [
        _balance(
            " ".join(filter(None, (text_or_none(row.get("country")), text_or_none(row.get("provider"))))),
            hundredths(row.get("balance")),
            row.get("currency"),
        )
        for row in _rows(body.get("balances"))
    ]


def feexpay_balances(body: Body, currency_of: Callable[[str], str]) -> list[FloatBalance | None]:
    """One for each network of the shop, by FeexPay's name for it. The answer has no currency."""
    balances: object = body
    for field in ("data", "data", "balances"):
        balances = balances.get(field) if isinstance(balances, dict) else None
    if not isinstance(balances, dict):
        return [None]
    return [_balance(network, hundredths(amount), currency_of(network)) for network, amount in balances.items()]


def stripe_balances(body: Body) -> list[FloatBalance | None]:
    """What can be paid out now, by currency, in its smallest unit."""
    return [
        _balance("", _from_smallest_unit(row.get("amount"), row.get("currency")), row.get("currency"))
        for row in _rows(body.get("available"))
    ]


def _balance(wallet: str, amount: Hundredths | None, currency: object) -> FloatBalance | None:
    """None when the provider states no amount or no currency that can be read."""
    code = text_or_none(currency)
    return None if amount is None or code is None else FloatBalance(wallet, amount, code.upper())


def _rows(value: object) -> list[Body]:
    """A list of objects; what is no object counts as an empty one, so that nothing is left out unseen."""
    return [row if isinstance(row, dict) else {} for row in value] if isinstance(value, list) else [{}]


def _from_smallest_unit(amount: object, currency: object) -> Hundredths | None:
    if isinstance(amount, bool) or not isinstance(amount, int):
        return None
    return Hundredths(amount if DECIMALS.get(str(currency).upper(), 2) else amount * 100)
