"""Which account of a provider some settings lead to, as a digest that is stored with each payment and refund
(docs/decisions.md, "Account fingerprint").

    2:<address and users>               a setting names the account
    2:<address and users>:<key>         no setting does: only the key says whose account it is

Digests of the first rule have neither the version nor the colon. They are compared by that rule, so that what was sent
before an upgrade is still known.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

_VERSION: Final = "2:"
#: What the API of an address serves: no account by itself.
_SCOPE: Final = ("target_env", "country")
#: The settings that name the account, or the user of one of its products. None of them is a secret.
_NAMES: Final = (
    "api_user",
    "disbursement_api_user",
    "client_id",
    "merchant_code",
    "retailer_msisdn",
    "shop",
    "code_pv",
)
#: The settings that stand for the account where none names it. They are renewed, so another one proves nothing.
_KEYS: Final = ("api_key", "token", "secret_key")
_DIGITS: Final = 12
#: The colons of a fingerprint with a key.
_COLONS: Final = 2
_FIRST_RULE: Final = ("target_env", "api_user", "country", "client_id", "merchant_code", "shop", "code_pv")
_FIRST_DIGITS: Final = 16

Settings = Mapping[str, str]


def fingerprint(provider: str, base_url: str, settings: Settings) -> str:
    account = _digest((provider, base_url, *_values(settings, (*_SCOPE, *_NAMES))), _DIGITS)
    if is_named(settings):
        return f"{_VERSION}{account}"
    return f"{_VERSION}{account}:{_digest(_values(settings, _KEYS), _DIGITS)}"


def former_fingerprint(provider: str, base_url: str, settings: Settings) -> str:
    """That of the first rule."""
    return _digest((provider, base_url, *_values(settings, _FIRST_RULE)), _FIRST_DIGITS)


def is_named(settings: Settings) -> bool:
    """Whether a setting names the account."""
    return any(settings.get(name) for name in _NAMES)


def is_fingerprint(text: str) -> bool:
    return text.startswith(_VERSION)


def only_key_differs(one: str, other: str) -> bool:
    """Whether both are accounts that only a key names, at one address."""
    address, _, _ = one.rpartition(":")
    return one.count(":") == other.count(":") == _COLONS and address == other.rpartition(":")[0]


def _values(settings: Settings, names: Iterable[str]) -> list[str]:
    return [settings.get(name, "") for name in names]


def _digest(values: Iterable[str], digits: int) -> str:
    return hashlib.sha256("\0".join(values).encode()).hexdigest()[:digits]
