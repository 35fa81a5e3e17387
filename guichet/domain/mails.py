"""Mails: what kinds there are, and when one that failed is tried again."""

from typing import Final, Literal, get_args

from guichet.clock import HOUR, MINUTE

MailStatus = Literal["pending", "sent", "failed"]
MAIL_STATUSES: Final[tuple[MailStatus, ...]] = get_args(MailStatus)
MailKind = Literal[
    "invitation",
    "password",
    "password_changed",
    "new_sign_in",
    "factor_changed",
    "staff_changed",
    "approval_requested",
    "approval_approved",
    "approval_refused",
    "approval_expired",
]
MAIL_KINDS: Final[tuple[MailKind, ...]] = get_args(MailKind)

#: Delays between attempts, in microseconds. A mail with a link that expires in an hour is useless after that.
RETRY_DELAYS: Final = (MINUTE, 5 * MINUTE, 20 * MINUTE, 2 * HOUR)
MAX_MAIL_ATTEMPTS: Final = len(RETRY_DELAYS) + 1
