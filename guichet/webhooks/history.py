"""The attempts at a delivery that ended: when, how long they took, what the receiver answered.

They are a column of the delivery, written by the UPDATE that records the attempt: no statement and no row more. An
attempt that does not count leaves nothing, nor does one that died with its process.
"""

from typing import Final

import msgspec
from msgspec import structs

from guichet.clock import Instant
from guichet.domain.events import DeliveryError
from guichet.domain.records import Record

#: Attempts that are kept: a delivery has five, and five more each time it is sent again.
MOST: Final = 20
#: Bytes of an answer's body that are kept, for whoever looks for the reason.
ANSWER_SHOWN: Final = 500


class PastAttempt(Record, frozen=True, rename={"ended_at": "at", "response_code": "status"}):
    """`duration`: microseconds. `answer`: the beginning of the body, which the receiver chose; `cut` if there was more.
    Both are what a stranger sent: never to be shown but as plain text."""

    ended_at: Instant
    duration: int
    response_code: int | None
    error: DeliveryError | None
    answer: str = ""
    cut: bool = False


_PastAttempts: Final = msgspec.json.Decoder(list[PastAttempt])
_ENCODER: Final = msgspec.json.Encoder()


def past_attempts(history: str | None) -> list[PastAttempt]:
    """Oldest first."""
    return [] if history is None else _PastAttempts.decode(history)


def with_attempt(history: str | None, attempt: PastAttempt) -> str:
    """The column with one attempt more; the oldest is forgotten beyond MOST."""
    return _ENCODER.encode([*past_attempts(history)[1 - MOST :], attempt]).decode()


def without_answers(history: str | None) -> str | None:
    """The column without what receivers sent."""
    if history is None:
        return None
    left = [structs.replace(attempt, answer="", cut=False) for attempt in past_attempts(history)]
    return _ENCODER.encode(left).decode()


def shown_answer(body: bytes) -> tuple[str, bool]:
    """The beginning of a body as text, and whether it was cut."""
    return body[:ANSWER_SHOWN].decode("utf-8", "replace"), len(body) > ANSWER_SHOWN
