"""Merchants, their two environments and their API keys (docs/contract.md, "Authentication"; D39)."""

import secrets
import string
from dataclasses import dataclass
from typing import Final, Literal, get_args

from guichet.clock import Instant
from guichet.domain.ids import ApiKeyId, MerchantId
from guichet.domain.money import Currency

Environment = Literal["test", "live"]
ENVS: Final[tuple[Environment, ...]] = get_args(Environment)

MerchantStatus = Literal["active", "pending", "suspended"]
MERCHANT_STATUSES: Final[tuple[MerchantStatus, ...]] = get_args(MerchantStatus)

_ALPHABET: Final = string.ascii_letters + string.digits


@dataclass(frozen=True, slots=True)
class Merchant:
    """`currency` is the default currency of the account's payment links (D19); `created_at` is an Instant. `time_zone`:
    of the dates that its customers see, None for the installation's (D131)."""

    id: MerchantId
    name: str
    status: MerchantStatus
    currency: Currency
    created_at: Instant
    time_zone: str | None = None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is stored: its hash, and its first characters (`preview`) by which a person recognises it."""

    id: ApiKeyId
    merchant_id: MerchantId
    env: Environment
    hash: str
    preview: str
    created_at: Instant
    expires_at: Instant | None
    revoked_at: Instant | None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is calling: a merchant in one environment."""

    merchant: Merchant
    env: Environment

    @property
    def livemode(self) -> bool:
        return self.env == "live"


def random_text(length: int) -> str:
    """Random characters of `[A-Za-z0-9]`, 5.95 bits each."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def new_webhook_secret() -> str:
    return f"whsec_{random_text(40)}"
