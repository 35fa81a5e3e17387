"""Mails: what kinds there are, when one that failed is tried again, and which addresses are accepted
(`email_validator`, which is imported at the first address that is not an ordinary one)."""

import re
from typing import Final, Literal, get_args

from guichet.clock import HOUR, MINUTE

MailStatus = Literal["pending", "sent", "failed"]
MAIL_STATUSES: Final[tuple[MailStatus, ...]] = get_args(MailStatus)
MailKind = Literal[
    "invitation",
    "password",
    "password_changed",
    "new_sign_in",
    "attempts_used_up",
    "factor_changed",
    "staff_changed",
    "approver_removed",
    "team_changed",
    "approval_requested",
    "approval_objectable",
    "approval_approved",
    "approval_refused",
    "approval_expired",
    "key_used_on_webhooks",
    "receipt",
    "payment_received",
    "payments_of_day",
]
MAIL_KINDS: Final[tuple[MailKind, ...]] = get_args(MailKind)

#: How often somebody is mailed about payments that came in.
PaymentMails = Literal["each", "daily"]
PAYMENT_MAILS: Final[tuple[PaymentMails, ...]] = get_args(PaymentMails)

#: Delays between attempts, in microseconds. A mail with a link that expires in an hour is useless after that.
RETRY_DELAYS: Final = (MINUTE, 5 * MINUTE, 20 * MINUTE, 2 * HOUR)
MAX_MAIL_ATTEMPTS: Final = len(RETRY_DELAYS) + 1


_PLAIN: Final = re.compile(
    r"[A-Za-z0-9_+-]{1,32}(?:\.[A-Za-z0-9_+-]{1,30})?@(?:[A-Za-z0-9][A-Za-z0-9-]{0,60}[A-Za-z0-9]\.){1,3}([A-Za-z]{2,20})"
)
#: Last parts of names that `email_validator` refuses, as it lists them: a test compares them.
_SPECIAL_NAMES: Final = frozenset({"arpa", "invalid", "local", "localhost", "onion", "test"})


def is_email(text: str) -> bool:
    return is_plain_email(text) or normalised_email(text) is not None


def is_plain_email(text: str) -> bool:
    """True if `text` is an address that `email_validator` certainly accepts. If False, `email_validator` must decide.

    `email_validator` alone takes a quarter of the processor time of a payment's creation, most of it for international
    domain names (bench/README.md).
    """
    match = _PLAIN.fullmatch(text)
    return match is not None and "--" not in text and match[1].lower() not in _SPECIAL_NAMES


def normalised_email(text: str) -> str | None:
    """The address with its domain normalised; None if it is not one."""
    from email_validator import EmailNotValidError, validate_email  # noqa: PLC0415 - few addresses are no ordinary ones

    try:
        return validate_email(text, check_deliverability=False).normalized
    except EmailNotValidError:
        return None
