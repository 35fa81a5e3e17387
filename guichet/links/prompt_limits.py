"""How often payments through links may make telephones ask their owners to confirm, by number and by link
(docs/decisions.md, "Prompt limits").

Anybody can open a public link and type somebody else's number. What counts are the stored payments, so that every
process sees the same, whatever the client address, also after a restart. Payments through the API are not counted:
their merchant has a key and answers for them. Neither are payments that succeeded, nor those that failed before the
telephone was asked: who pays several times, or while the operator is down, harasses nobody.
"""

from collections.abc import Sequence
from typing import Final, Literal

from sqlalchemy import bindparam, func, literal, or_, select, union_all

from guichet.clock import DAY, MINUTE, SECOND, Instant, earlier, later
from guichet.db.engine import Row, Transaction
from guichet.db.sql_functions import lock_until_commit
from guichet.db.tables import payments
from guichet.domain.errors import RateLimited
from guichet.domain.failures import RefusalReason
from guichet.domain.payments import Payment
from guichet.domain.phone_numbers import written_forms
from guichet.settings import Settings

LimitName = Literal["prompt-phone", "prompt-link"]

WINDOW: Final = 10 * MINUTE
#: Within a day, one number may be asked this many times as often as within ten minutes.
DAILY_FACTOR: Final = 4
#: The newest payments of a link that are looked at; a link with more in ten minutes is judged by these.
LINK_SAMPLE: Final = 500
#: By how much the clocks of our processes may differ. What is dated later is from before a clock was set back.
_CLOCK_SKEW: Final = MINUTE
#: Failures after which the telephone was certainly not asked.
_SILENT_FAILURES: Final[tuple[RefusalReason, ...]] = (
    "payer_not_found",
    "operator_unavailable",
    "configuration",
    "not_connected",
    "currency_not_accepted",
)

_LOCK: Final = select(lock_until_commit(bindparam("phone")))
_OTHER_PROMPTS: Final = (
    payments.c.link_id.is_not(None),
    payments.c.phone_number.is_not(None),
    payments.c.id != bindparam("payment_id"),
    payments.c.created_at <= bindparam("until"),
    *(func.coalesce(payments.c.failure_reason, "") != reason for reason in _SILENT_FAILURES),
)
_UNCONFIRMED: Final = or_(payments.c.status == "pending", payments.c.status == "failed")
_TO_PHONE: Final = (
    select(literal("prompt-phone").label("name"), payments.c.created_at, _UNCONFIRMED.label("unconfirmed"))
    .where(
        *_OTHER_PROMPTS,
        or_(payments.c.phone_number == bindparam("phone"), payments.c.phone_number == bindparam("other_form")),
        payments.c.env == bindparam("env"),  # A test asks no telephone, and must not use up what live may ask.
        payments.c.created_at > bindparam("since_day"),
        _UNCONFIRMED,
    )
    .order_by(payments.c.created_at.desc())
    .limit(bindparam("most_to_phone"))
    .subquery()
)
_OF_LINK: Final = (
    select(literal("prompt-link").label("name"), payments.c.created_at, _UNCONFIRMED.label("unconfirmed"))
    .where(
        *_OTHER_PROMPTS, payments.c.link_id == bindparam("link_id"), payments.c.created_at > bindparam("since_window")
    )
    .order_by(payments.c.created_at.desc())
    .limit(bindparam("most_of_link"))
    .subquery()
)
#: Reads two ranges of partial indexes, which hold payments of links only. Its cost grows with what one number paid or
#: tried through links in a day, which the limits keep small, and with the newest payments of the link.
_PROMPTS: Final = union_all(select(_TO_PHONE), select(_OF_LINK))


class TooManyPrompts(RateLimited):
    """The telephone, or telephones from this link, were asked too often; from `retry_at` on they may be asked again."""

    def __init__(self, limit: LimitName, retry_at: Instant) -> None:
        super().__init__("Trop de demandes de paiement n'ont pas été validées. Réessayez plus tard.")
        self.limit = limit
        self.retry_at = retry_at


async def check(tx: Transaction, settings: Settings, payment: Payment) -> None:
    """Raises TooManyPrompts if this payment, inserted in this transaction, is one too many; then roll it back.

    The transaction must have locked the link, or payments of one link at the same time would not see each other.
    """
    off = not settings.phone_prompts and not settings.link_prompts
    if payment.phone_number is None or payment.link_id is None or off:
        return
    phone, other_form = written_forms(payment.phone_number)
    await tx.one(_LOCK, phone=phone)  # Against payments of other links to this number.
    now = payment.created_at
    rows = await tx.all(
        _PROMPTS,
        payment_id=payment.id,
        phone=phone,
        other_form=other_form,
        env=payment.env,
        link_id=payment.link_id,
        until=later(now, _CLOCK_SKEW),
        since_day=earlier(now, DAY),
        since_window=earlier(now, WINDOW),
        most_to_phone=settings.phone_prompts * DAILY_FACTOR,
        most_of_link=LINK_SAMPLE if settings.link_prompts else 0,
    )
    _check_phone(rows, settings.phone_prompts, now)
    _check_link(rows, settings.link_prompts, now)


def _check_phone(rows: Sequence[Row], limit: int, now: Instant) -> None:
    """`rows`: (limit's name, created_at, whether it is not confirmed). A limit of 0 is none."""
    prompt_times = sorted((created_at for name, created_at, _ in rows if name == "prompt-phone"), reverse=True)
    retry_at = now
    for most, window in ((limit, WINDOW), (limit * DAILY_FACTOR, DAY)):
        if most and len(prompt_times) >= most:
            retry_at = max(retry_at, later(prompt_times[most - 1], window))
    if retry_at > now:
        raise TooManyPrompts("prompt-phone", retry_at)


def _check_link(rows: Sequence[Row], limit: int, now: Instant) -> None:
    """`rows` as above."""
    prompts = [(created_at, unconfirmed) for name, created_at, unconfirmed in rows if name == "prompt-link"]
    unconfirmed = sorted((created_at for created_at, unconfirmed in prompts if unconfirmed), reverse=True)
    most = limit + len(prompts) - len(unconfirmed)
    if limit and len(unconfirmed) >= most:
        raise TooManyPrompts("prompt-link", max(later(now, SECOND), later(unconfirmed[most - 1], WINDOW)))
