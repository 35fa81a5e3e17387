"""Merchants, their two environments and their API keys (docs/contract.md, "Authentication"; D39)."""

import secrets
import string
from typing import Final, Literal, get_args

from guichet.clock import Instant
from guichet.domain.ids import ApiKeyId, MerchantId
from guichet.domain.key_access import FULL_ACCESS, Network
from guichet.domain.money import Currency, Hundredths
from guichet.domain.names import holds_address
from guichet.domain.records import Record

Environment = Literal["test", "live"]
ENVS: Final[tuple[Environment, ...]] = get_args(Environment)

MerchantStatus = Literal["active", "pending", "suspended"]
MERCHANT_STATUSES: Final[tuple[MerchantStatus, ...]] = get_args(MerchantStatus)

KeyState = Literal["active", "expired", "revoked"]
_MAX_NAME: Final = 100
MAX_KEY_NAME: Final = 60

_ALPHABET: Final = string.ascii_letters + string.digits


class MerchantLimits(Record, frozen=True):
    """What a merchant may do less, or more, than the others; None for the common limit. `rate_limit` is in requests a
    minute of all its keys together, `payment_limit` (the amount of one live payment) and `daily_limit` (of all of a
    day) in hundredths of the merchant's currency."""

    rate_limit: int | None = None
    payment_limit: Hundredths | None = None
    daily_limit: Hundredths | None = None


class Merchant(Record, frozen=True):
    """`currency` is the default currency of the account's payment links (D19); `created_at` is an Instant. `time_zone`:
    of the dates that its customers see, None for the installation's.
    `rate_limit` and the two after it are its `limits`."""

    id: MerchantId
    name: str
    status: MerchantStatus
    currency: Currency
    created_at: Instant
    time_zone: str | None = None
    rate_limit: int | None = None
    payment_limit: Hundredths | None = None
    daily_limit: Hundredths | None = None
    #: The service itself: its books have what belongs to no merchant. There is one at most, and it has no keys.
    is_house: bool = False

    @property
    def limits(self) -> MerchantLimits:
        return MerchantLimits(self.rate_limit, self.payment_limit, self.daily_limit)


class ApiKey(Record, frozen=True):
    """A key as it is stored: its hash, and its first characters (`preview`) by which a person recognises it."""

    id: ApiKeyId
    merchant_id: MerchantId
    env: Environment
    hash: str
    preview: str
    created_at: Instant
    expires_at: Instant | None
    revoked_at: Instant | None
    #: Up to a minute before the last request that it was used for; None if it never was.
    last_used_at: Instant | None
    #: As `KeyAccess` has them.
    scopes: int
    networks: str | None
    #: When the last row of `key_acts` about a read of the webhook secret was written; when the owners were last mailed
    #: about acts of the key, or will be.
    secret_read_at: Instant | None
    owners_mailed_at: Instant | None
    #: What its merchant calls it, if it has a name.
    name: str | None

    @property
    def label(self) -> str:
        return key_label(self.preview, self.name)

    def state(self, now: Instant) -> KeyState:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"


class Caller(Record, frozen=True):
    """Who is calling: a merchant in one environment. `key_id`: the key of the request, if it has one; `scopes` and
    `networks`: what that key may do, and where it is accepted from, if not from everywhere (`key_access.py`)."""

    merchant: Merchant
    env: Environment
    key_id: ApiKeyId | None = None
    scopes: int = FULL_ACCESS
    networks: tuple[Network, ...] = ()

    @property
    def livemode(self) -> bool:
        return self.env == "live"


def merchant_name(text: str) -> str | None:
    """The name that customers see; None unless it is 1 to 100 printable characters, without an address."""
    name = text.strip()
    fits = name and len(text) <= _MAX_NAME and text.isprintable()
    return name if fits and not holds_address(name) else None


def key_name(text: str) -> str | None:
    """What a merchant calls an API key; None unless it is 1 to 60 printable characters, without an address."""
    name = merchant_name(text)
    return name if name is not None and len(name) <= MAX_KEY_NAME else None


def key_label(preview: str, name: str | None) -> str:
    """`Caisse · sk_live_abcd…`: an API key as people recognise it."""
    return f"{name} · {preview}" if name else preview


def random_text(length: int) -> str:
    """Random characters of `[A-Za-z0-9]`, 5.95 bits each."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def new_webhook_secret() -> str:
    return f"whsec_{random_text(40)}"
