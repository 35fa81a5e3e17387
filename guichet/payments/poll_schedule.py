"""When a pending payment or refund is polled next. Each pending one always has a next poll."""

from typing import Final

from guichet.clock import SECOND, Instant, later
from guichet.context import AppContext
from guichet.domain.payments import INCIDENT_AGE_SECONDS, Payment, Refund, poll_interval
from guichet.incidents import repository as incidents
from guichet.incidents.details import IncidentDetail
from guichet.providers.sandbox.provider import NEVER

#: How long a process may work on a payment or refund alone; longer than a provider may take to answer.
LEASE_DURATION: Final = 30 * SECOND
#: Pages and callbacks have a provider asked about one payment or refund at most this often, in microseconds.
QUESTION_INTERVAL: Final = 5 * SECOND


async def next_poll(ctx: AppContext, subject: Payment | Refund) -> Instant:
    """The instant of the next poll. Opens an incident if it is live and has been pending for 72 hours.

    In the test environment what is still pending after two polls stays so: only its readers ask again.
    """
    if subject.env == "test" and subject.poll_count > 0:
        return NEVER
    now = ctx.clock.now()
    age = (now - subject.created_at) / SECOND
    if age >= INCIDENT_AGE_SECONDS and subject.env == "live":
        await incidents.report_about(ctx.db, subject, incidents.STUCK, IncidentDetail.STUCK(), now)
    return later(now, poll_interval(subject.poll_count, age) * SECOND)


def next_question_at(subject: Payment | Refund, now: Instant) -> Instant:
    """When a page or a callback may cause a question: now, or QUESTION_INTERVAL after the last question."""
    if subject.asked_at is None or subject.asked_at > now:  # The clock was set back since.
        return now
    return max(now, later(subject.asked_at, QUESTION_INTERVAL))
