"""How the providers' answers become balances of ours with them (docs/providers, "Other calls" of each page)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from guichet.domain.money import Hundredths
from guichet.providers.base import Unknown
from guichet.providers.capabilities import FloatBalance
from guichet.providers.shared.client import CallResult, ProviderResponse
from guichet.providers.shared.fields import text_or_none
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


def balance_of(wallet: str, amount: Hundredths | None, currency: object) -> FloatBalance | None:
    """None when the provider states no amount or no currency that can be read."""
    code = text_or_none(currency)
    return None if amount is None or code is None else FloatBalance(wallet, amount, code.upper())


def rows_of(value: object) -> list[Body]:
    """A list of objects; what is no object counts as an empty one, so that nothing is left out unseen."""
    return [row if isinstance(row, dict) else {} for row in value] if isinstance(value, list) else [{}]
