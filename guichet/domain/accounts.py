"""People who use the console: users, their sessions, and the single-use links that are mailed to them."""

import hashlib
import re
import secrets
import unicodedata
from typing import Final, Literal, NewType, get_args

from guichet.clock import DAY, HOUR, MINUTE, Instant
from guichet.domain.ids import MerchantId
from guichet.domain.mails import normalised_email
from guichet.domain.names import holds_address
from guichet.domain.records import Record
from guichet.domain.roles import MerchantRole, StaffRole

UserId = NewType("UserId", int)

UserStatus = Literal["invited", "active", "disabled"]
USER_STATUSES: Final[tuple[UserStatus, ...]] = get_args(UserStatus)
Language = Literal["fr", "en"]
USER_LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
LinkPurpose = Literal["invitation", "password"]
LINK_PURPOSES: Final[tuple[LinkPurpose, ...]] = get_args(LinkPurpose)

#: ASVS 4.0.3, 2.1.1 and 2.1.2: at least 12 characters; more than 128 would only make the hash slower.
PASSWORD_MIN: Final = 12
PASSWORD_MAX: Final = 128
#: A session ends when nothing was done for so long, and at the latest so long after the sign-in.
IDLE_END: Final = 30 * MINUTE
ABSOLUTE_END: Final = 12 * HOUR
#: How long a second factor counts as fresh, for acts that ask for one again.
STEP_UP_LASTS: Final = 5 * MINUTE
#: How long the links in mails can be used.
LINK_LASTS: Final[dict[LinkPurpose, int]] = {"invitation": 7 * DAY, "password": HOUR}

#: 32 random bytes, in URL-safe base64: 43 characters.
_SECRET_BYTES: Final = 32
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}")


class User(Record, frozen=True):
    """A row of `users`.

    `password_hash` is None until the invitation was accepted. `totp_secret` is encrypted; `totp_confirmed` says whether
    the person proved once that the telephone shows its codes; `next_totp_secret` is that of a new telephone until it
    has proved the same; `totp_step` is the number of the last code that was accepted, so that each counts once.
    `staff_role`: None for a merchant's team; `staff_since`: when the person got it, or was enabled again with it.
    `approver_until`: when the right to approve was last taken from the person; `removed_approver_at`: when the person
    last took it from somebody.
    """

    id: UserId
    email: str
    name: str
    language: Language
    status: UserStatus
    staff_role: StaffRole | None
    password_hash: str | None
    totp_secret: str | None
    totp_confirmed: bool
    totp_step: int
    created_at: Instant
    updated_at: Instant
    last_signed_in_at: Instant | None
    next_totp_secret: str | None = None
    staff_since: Instant | None = None
    approver_until: Instant | None = None
    removed_approver_at: Instant | None = None


class Membership(Record, frozen=True):
    user_id: UserId
    merchant_id: MerchantId
    role: MerchantRole
    created_at: Instant


class TeamOffer(Record, frozen=True):
    """The place in a merchant's team that an invitation offers; a membership once the person has accepted."""

    merchant_id: MerchantId
    role: MerchantRole


class Passkey(Record, frozen=True):
    """A row of `passkeys`. `credential_id` and `public_key` (COSE) are URL-safe base64. `sign_count`: the key's own
    counter at its last use; 0 for keys that do not count."""

    id: int
    user_id: UserId
    credential_id: str
    public_key: str
    sign_count: int
    name: str
    created_at: Instant
    last_used_at: Instant | None


class Session(Record, frozen=True):
    """A row of `user_sessions`; the cookie's secret is not among its columns, only its hash. `factor_at`: when a second
    factor was given last, None if only the password was. `address` and `agent`: shown in the list of sessions."""

    id: int
    user_id: UserId
    hash: str
    created_at: Instant
    last_seen_at: Instant
    factor_at: Instant | None
    address: str
    agent: str

    def ends_at(self) -> Instant:
        return Instant(min(self.last_seen_at + IDLE_END, self.created_at + ABSOLUTE_END))

    def factor_is_fresh(self, now: Instant) -> bool:
        return self.factor_at is not None and now - self.factor_at <= STEP_UP_LASTS


def new_secret() -> str:
    """For a cookie or a link: 256 random bits, which need no salt and no slow hash where they are stored."""
    return secrets.token_urlsafe(_SECRET_BYTES)


def is_secret(text: str) -> bool:
    return _SECRET.fullmatch(text) is not None


def secret_hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def normal_email(text: str) -> str | None:
    """The address as it is stored and compared: the domain normalised, all in lower case; None if it is not one."""
    email = normalised_email(text.strip())
    return None if email is None else email.lower()


def normal_name(text: str) -> str | None:
    """A person's name on one line, None when nothing readable is left, it is longer than 100 characters or it holds an
    address."""
    name = " ".join(unicodedata.normalize("NFC", text).split())
    readable = name and len(name) <= 100 and not any(unicodedata.category(char).startswith("C") for char in name)
    return name if readable and not holds_address(name) else None


def normal_password(text: str) -> str:
    """What is hashed: the same text whatever keyboard composed its accents (NIST SP 800-63B, 5.1.1.2)."""
    return unicodedata.normalize("NFKC", text)
