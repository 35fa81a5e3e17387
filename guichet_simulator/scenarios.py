"""What an operator can do to its client, as one table. It covers every row of docs/providers/README.md,
"What a simulator must show".

A request whose number (or, where the API carries no number, whose amount in the currency's smallest unit) ends in

    90nn   meets scenario nn when it is initiated,
    91nn   succeeds after two seconds, and its refund meets scenario nn,
    92nn   succeeds after two seconds, and the first question about it meets scenario nn,

with nn from the table below. Anything else waits for the simulated phone (`/simulator/phone`), except where the
customer agreed beforehand with a code: such a request succeeds by itself. A refund that no scenario concerns succeeds
after one second. `POST /simulator/control/next` forces a scenario by name, whatever the digits.
"""

from dataclasses import dataclass, replace
from enum import StrEnum, auto
from typing import Final

from guichet_simulator.store import EXPIRED, FAILED, SUCCEEDED, State


class Answer(StrEnum):
    """How a call is answered."""

    NORMAL = auto()
    #: The outcome is stated at once, in the answer, by the families that can; the others answer as usual.
    FINAL = auto()
    #: An explicit business refusal, in the family's words.
    REFUSED = auto()
    #: Refused because the account is not set up for this operator: a fault of ours, not of the payer.
    NOT_CONFIGURED = auto()
    #: As if the identifier had been used before, where the family has such an answer.
    DUPLICATE = auto()
    #: HTTP 500 that carries a business code, where the family does that; an ordinary refusal elsewhere.
    BUSINESS_500 = auto()
    #: HTTP 500 that says nothing.
    BROKEN = auto()
    #: HTTP 200 and a body nobody can read.
    GARBAGE = auto()
    #: The connection is closed without a byte.
    DROPPED = auto()
    #: The connection is closed in the middle of the body.
    HALVED = auto()
    #: The usual answer, after `delay` seconds.
    SLOW = auto()
    UNAUTHORIZED = auto()
    RATE_LIMITED = auto()
    UNAVAILABLE = auto()


class Notice(StrEnum):
    """What the operator's notifications do."""

    NORMAL = auto()
    NONE = auto()
    TWICE = auto()
    #: A true one, then its opposite.
    CONTRADICTED = auto()
    #: A false and unverifiable one before anything happened.
    FORGED = auto()


@dataclass(frozen=True, slots=True)
class Scenario:
    """`stored`: the operator takes the request. `plan`: what becomes of it after `after` seconds, None for nothing."""

    digits: str
    name: str
    meaning: str
    stored: bool = True
    answer: Answer = Answer.NORMAL
    plan: State | None = SUCCEEDED
    reason: str | None = None
    after: float = 2.0
    delay: float = 25.0
    notice: Notice = Notice.NORMAL
    #: Waits for the simulated phone; `plan` (expiry) is what happens if nobody picks it up.
    by_hand: bool = False
    #: Added to the amount stated afterwards, in hundredths.
    amount_error: int = 0
    wrong_currency: bool = False
    hides_amount: bool = False


def _not_stored(digits: str, name: str, meaning: str, answer: Answer, reason: str | None = None) -> Scenario:
    return Scenario(digits, name, meaning, stored=False, answer=answer, plan=None, reason=reason)


WAITS: Final = Scenario("", "waits", "waits for the simulated phone", plan=EXPIRED, reason="expired", by_hand=True)
PROMPT: Final = Scenario("", "prompt", "a refund that nothing concerns succeeds after a second", after=1.0)

SCENARIOS: Final[tuple[Scenario, ...]] = (
    Scenario("01", "succeeds", "accepted, succeeds after two seconds, one callback"),
    Scenario("02", "succeeds_late", "accepted, succeeds after thirty seconds", after=30.0),
    Scenario("03", "declined", "accepted, then refused for want of money", plan=FAILED, reason="insufficient_funds"),
    Scenario("04", "rejected", "accepted, then refused by the customer", plan=FAILED, reason="rejected_by_payer"),
    Scenario("05", "expires", "accepted, then not approved in time", plan=EXPIRED, reason="expired"),
    _not_stored("06", "refused", "refused at initiation", Answer.REFUSED, "payer_not_found"),
    Scenario("07", "final_success", "succeeded in the very answer", answer=Answer.FINAL, after=0.0),
    Scenario(
        "08", "final_failure", "failed in the very answer",
        answer=Answer.FINAL, after=0.0, plan=FAILED, reason="insufficient_funds",
    ),
    Scenario("09", "never_final", "accepted, stays pending for ever", plan=None),
    Scenario("10", "lost_answer", "stored, connection dropped, then succeeds", answer=Answer.DROPPED),
    Scenario(
        "11", "lost_answer_declined", "stored, connection dropped, then refused",
        answer=Answer.DROPPED, plan=FAILED, reason="insufficient_funds",
    ),
    _not_stored("12", "lost_request", "connection dropped and nothing stored", Answer.DROPPED),
    Scenario("13", "error_500", "stored, answers 500 without a code, then succeeds", answer=Answer.BROKEN),
    _not_stored("14", "error_500_not_stored", "answers 500 without a code, nothing stored", Answer.BROKEN),
    _not_stored(
        "15", "business_500", "answers 500 with a business code, nothing stored",
        Answer.BUSINESS_500, "payer_not_found"),
    Scenario("16", "unreadable", "stored, answers 200 and an unreadable body, then succeeds", answer=Answer.GARBAGE),
    Scenario("17", "halfway", "stored, closes the connection halfway through the answer", answer=Answer.HALVED),
    Scenario("18", "slow", "stored, answers after twenty-five seconds", answer=Answer.SLOW),
    Scenario("19", "wrong_amount", "succeeds, states one unit less than asked", amount_error=-1_00),
    Scenario("20", "wrong_currency", "succeeds, states another currency", wrong_currency=True),
    Scenario("21", "hidden_amount", "succeeds, states no amount", hides_amount=True),
    Scenario(
        "22", "forged_callback", "a forged callback claims success, then it is refused",
        plan=FAILED, reason="rejected_by_payer", after=4.0, notice=Notice.FORGED,
    ),
    Scenario("23", "duplicate_callback", "succeeds, the same callback comes twice", notice=Notice.TWICE),
    Scenario("24", "late_callback", "succeeds, then a late callback claims failure", notice=Notice.CONTRADICTED),
    Scenario("25", "no_callback", "succeeds, nobody is told", notice=Notice.NONE),
    _not_stored("26", "unauthorized", "answers 401", Answer.UNAUTHORIZED),
    _not_stored("27", "rate_limited", "answers 429 with Retry-After", Answer.RATE_LIMITED),
    _not_stored("28", "unavailable", "answers 503, nothing stored", Answer.UNAVAILABLE),
    Scenario("29", "unavailable_stored", "stored, answers 503 all the same, then succeeds", answer=Answer.UNAVAILABLE),
    _not_stored("30", "not_configured", "refused: the account is not open for it", Answer.NOT_CONFIGURED),
    Scenario("31", "duplicate", "stored, answers like a repeat, then succeeds", answer=Answer.DUPLICATE),
    Scenario("32", "pending_long", "accepted, final after a minute", after=60.0),
)  # fmt: skip

BY_NAME: Final = {scenario.name: scenario for scenario in (*SCENARIOS, WAITS, PROMPT)}
_BY_DIGITS: Final = {scenario.digits: scenario for scenario in SCENARIOS}

#: Rows that a family cannot show, and why. Everywhere else the table holds in full.
NOT_SHOWN: Final[dict[tuple[str, str], str]] = {
    ("feexpay", "wrong_currency"): "answers carry no currency",
    ("wave", "duplicate"): "a repeat is simply a second session",
    ("stripe", "duplicate"): "a repeat replays the first answer, by Idempotency-Key",
    ("orange", "wrong_amount"): "the status is asked by amount: another amount finds nothing",
    ("orange", "wrong_currency"): "answers carry no currency",
    ("orange", "hidden_amount"): "answers carry no amount anyway",
    ("sonatel", "hidden_amount"): "the status carries no amount anyway; the list does",
    ("coris", "wrong_currency"): "answers carry no currency",
    ("coris", "never_final"): "every answer is final",
    ("coris", "pending_long"): "every answer is final",
    ("coris", "succeeds_late"): "every answer is final",
    ("coris", "forged_callback"): "no callbacks",
    ("coris", "duplicate_callback"): "no callbacks",
    ("coris", "late_callback"): "no callbacks",
}


def for_debit(digits: str) -> Scenario | None:
    """What the last digits of a number or an amount ask of an initiation."""
    prefix, suffix = digits[-4:-2], digits[-2:]
    if suffix not in _BY_DIGITS:
        return None
    return {"90": _BY_DIGITS[suffix], "91": BY_NAME["succeeds"], "92": BY_NAME["succeeds"]}.get(prefix)


def for_credit(digits: str) -> Scenario | None:
    return _BY_DIGITS.get(digits[-2:]) if digits[-4:-2] == "91" else None


def for_status(digits: str) -> Scenario | None:
    return _BY_DIGITS.get(digits[-2:]) if digits[-4:-2] == "92" else None


def timed(scenario: Scenario, after: float | None, delay: float | None) -> Scenario:
    return replace(
        scenario,
        after=scenario.after if after is None else after,
        delay=scenario.delay if delay is None else delay,
    )
