"""Merchants, their two environments and their API keys (docs/contract.md, "Authentication"; D39)."""

import hashlib
import re
import secrets
import string
from dataclasses import dataclass
from typing import Final, Literal, get_args

Env = Literal["test", "live"]
ENVS: Final[tuple[str, ...]] = get_args(Env)

MerchantStatus = Literal["active", "pending", "suspended"]
MERCHANT_STATUSES: Final[tuple[str, ...]] = get_args(MerchantStatus)

_ALPHABET: Final = string.ascii_letters + string.digits
_KEY: Final = re.compile(r"sk_(test|live)_[A-Za-z0-9]{32}")


@dataclass(frozen=True, slots=True)
class Merchant:
    """`currency` is the default currency of the account's payment links (D19); `created_at` is an Instant."""

    id: int
    name: str
    status: str
    currency: str
    created_at: int


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A stored key: only its hash, and enough of its beginning for a person to recognise it."""

    id: int
    merchant_id: int
    env: str
    hash: str
    preview: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is calling: a merchant in one environment."""

    merchant: Merchant
    env: str

    @property
    def livemode(self) -> bool:
        return self.env == "live"


def random_text(length: int) -> str:
    """Random characters of `[A-Za-z0-9]`, 5.95 bits each."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def new_key(env: str) -> str:
    return f"sk_{env}_{random_text(32)}"


def new_webhook_secret() -> str:
    return f"whsec_{random_text(40)}"


def key_env(key: str) -> str | None:
    """The environment a key claims by its prefix; None if it is malformed."""
    match = _KEY.fullmatch(key)
    return match[1] if match else None


def key_hash(key: str) -> str:
    """190 random bits need no salt and no slow hash."""
    return hashlib.sha256(key.encode()).hexdigest()


def key_preview(key: str) -> str:
    return key[:12] + "…"
