"""Which account of a provider some settings lead to, as a digest that is stored with each payment and refund
(docs/decisions.md, "Account fingerprint").

    2:<address and users>               a setting names the account
    2:<address and users>:<key>         no setting does: only the key says whose account it is
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

_VERSION: Final = "2:"
_DIGITS: Final = 12
#: The colons of a fingerprint with a key.
_COLONS: Final = 2

Settings = Mapping[str, str]


def fingerprint(
    provider: str, base_url: str, settings: Settings, account_settings: Iterable[str], key_setting: str | None
) -> str:
    """`account_settings`, `key_setting`: see `HttpProvider`."""
    values = [settings.get(name, "") for name in account_settings]
    account = f"{_VERSION}{_digest((provider, base_url, *values))}"
    return f"{account}:{_digest((settings[key_setting],))}" if key_setting else account


def is_fingerprint(text: str) -> bool:
    return text.startswith(_VERSION)


def only_key_differs(first: str, second: str) -> bool:
    """Whether both are accounts that only a key names, at one address."""
    address, _, _ = first.rpartition(":")
    return first.count(":") == second.count(":") == _COLONS and address == second.rpartition(":")[0]


def _digest(values: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(values).encode()).hexdigest()[:_DIGITS]
