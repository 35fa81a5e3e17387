"""Never arrived: when "not found" proves that a provider will never execute a request whose answer was lost (D88).

One "not found" proves nothing, since the request may still be on its way. The proof is at least three such answers in a
row whose gaps cover fifteen minutes. A gap counts only between two answers that one process got one after the other,
because only its monotonic clock measures it: a restart, or a jump of the machine's clock, adds nothing.
"""

from typing import Final, TypeVar

from msgspec import structs

from guichet.clock import MINUTE
from guichet.context import AppContext, NotFoundAnswer
from guichet.domain.payments import Payment, Refund, SubjectType

#: Answers that are needed, and the microseconds that they must cover. Providers drop a request after five minutes.
ANSWERS: Final = 3
PERIOD: Final = 15 * MINUTE
#: Microseconds more where nobody saw the request end, because its process died: longer than any request may take.
UNSEEN_END: Final = 2 * MINUTE
#: Answers that a process remembers; when they are more, all are forgotten, which only makes the proof take longer.
_REMEMBERED: Final = 10_000

Subject = TypeVar("Subject", Payment, Refund)


def count_answer(ctx: AppContext, subject: Subject) -> Subject:
    """The payment or refund with one more answer "not found" counted; the caller stores it."""
    now, key = ctx.clock.monotonic(), _key(subject)
    last = ctx.not_found_answers.get(key)
    # If the row is not as this process left it, another process got an answer in between, and has counted that time.
    ours = last is not None and (last.count, last.duration) == (subject.not_found_count, subject.not_found_duration)
    gap = now - last.at if last is not None and ours else 0
    count, duration = subject.not_found_count + 1, subject.not_found_duration + gap
    if len(ctx.not_found_answers) >= _REMEMBERED:
        ctx.not_found_answers.clear()
    ctx.not_found_answers[key] = NotFoundAnswer(now, count, duration)
    return structs.replace(subject, not_found_count=count, not_found_duration=duration)


def forget_answers(ctx: AppContext, subject: Subject) -> Subject:
    """The payment or refund after any other answer: the count begins again."""
    if subject.not_found_count == 0:
        return subject
    ctx.not_found_answers.pop(_key(subject), None)
    return structs.replace(subject, not_found_count=0, not_found_duration=0)


def is_proven(subject: Payment | Refund) -> bool:
    """Whether the answers counted so far prove that the request never arrived. Never, once the provider gave its own
    reference: it did know the request."""
    end_was_seen = isinstance(subject, Payment) and subject.initiation_ended_at is not None
    return (
        subject.provider_reference is None
        and subject.not_found_count >= ANSWERS
        and subject.not_found_duration >= (PERIOD if end_was_seen else PERIOD + UNSEEN_END)
    )


def _key(subject: Payment | Refund) -> tuple[SubjectType, int]:
    return "payment" if isinstance(subject, Payment) else "refund", subject.id
