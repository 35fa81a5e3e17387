"""What a provider can do to its client, as one table; it covers docs/providers/README.md, "What a simulator must show".

A request whose number (or, where the API has no number, whose amount in the smallest unit of the currency) ends with

    90nn   meets scenario nn when it is initiated,
    91nn   succeeds after two seconds, and its refund meets scenario nn,
    92nn   succeeds after two seconds, and the first status call about it meets scenario nn,

where nn stands in the table below. Every other request waits for the simulated phone (`/simulator/phone`), or succeeds
by itself when the customer gave a code. Every other refund succeeds after one second. `POST /simulator/control/next`
forces a scenario by name, whatever the digits.
"""

from dataclasses import dataclass, replace
from enum import StrEnum, auto
from typing import Final

from guichet_simulator.models import EXPIRED, FAILED, SUCCEEDED, FinalState


class ResponseKind(StrEnum):
    NORMAL = auto()
    #: The response states the final state, where the provider can do that; the others respond as usual.
    FINAL = auto()
    #: A business refusal in the provider's own words.
    REFUSED = auto()
    #: Refused because our account is not set up for this operator.
    NOT_CONFIGURED = auto()
    #: As if the identifier had been used before, where the provider has such a response.
    DUPLICATE = auto()
    #: HTTP 500 with a business code where the provider does that; elsewhere REFUSED.
    BUSINESS_500 = auto()
    #: HTTP 500 without a code.
    SERVER_ERROR = auto()
    #: HTTP 200 with an unreadable body.
    UNREADABLE = auto()
    #: The connection is closed before the first byte.
    DROPPED = auto()
    #: The connection is closed in the middle of the body.
    TRUNCATED = auto()
    #: The normal response, after `delay` seconds.
    SLOW = auto()
    #: Our own balance does not cover the payout: whatever the scenario, while the dashboard says so.
    FLOAT_EMPTY = auto()
    #: A refund is refused by a code that means the payee or our own balance; elsewhere REFUSED.
    AMBIGUOUS = auto()
    UNAUTHORIZED = auto()
    RATE_LIMITED = auto()
    UNAVAILABLE = auto()


class CallbackBehaviour(StrEnum):
    NORMAL = auto()
    NONE = auto()
    TWICE = auto()
    #: A true one, then one that claims the opposite.
    CONTRADICTED = auto()
    #: An untrue one with a wrong signature, before anything has happened.
    FORGED = auto()


@dataclass(frozen=True, slots=True)
class Scenario:
    """`stored`: the provider takes the request. `final_state`: what it becomes after `after` seconds; None: nothing."""

    digits: str
    name: str
    meaning: str
    stored: bool = True
    response: ResponseKind = ResponseKind.NORMAL
    final_state: FinalState | None = SUCCEEDED
    reason: str | None = None
    after: float = 2.0
    delay: float = 25.0
    callbacks: CallbackBehaviour = CallbackBehaviour.NORMAL
    #: Waits for the simulated phone; `final_state` is what happens when it is not used in time.
    waits_for_customer: bool = False
    #: Hundredths that are added to the amount stated in responses and callbacks.
    amount_error: int = 0
    wrong_currency: bool = False
    hides_amount: bool = False


def _not_stored(digits: str, name: str, meaning: str, response: ResponseKind, reason: str | None = None) -> Scenario:
    return Scenario(digits, name, meaning, stored=False, response=response, final_state=None, reason=reason)


WAITS: Final = Scenario(
    "", "waits", "waits for the simulated phone",
    final_state=EXPIRED, reason="expired", waits_for_customer=True,
)  # fmt: skip
PROMPT: Final = Scenario("", "prompt", "a refund without a scenario succeeds after a second", after=1.0)

SCENARIOS: Final[tuple[Scenario, ...]] = (
    Scenario("01", "succeeds", "accepted, succeeds after two seconds, one callback"),
    Scenario("02", "succeeds_late", "accepted, succeeds after thirty seconds", after=30.0),
    Scenario(
        "03", "declined", "accepted, then refused for insufficient funds",
        final_state=FAILED, reason="insufficient_funds",
    ),
    Scenario(
        "04", "rejected", "accepted, then refused by the customer",
        final_state=FAILED, reason="rejected_by_payer",
    ),
    Scenario("05", "expires", "accepted, then not approved in time", final_state=EXPIRED, reason="expired"),
    _not_stored("06", "refused", "refused at initiation", ResponseKind.REFUSED, "payer_not_found"),
    Scenario("07", "final_success", "the response says that it succeeded", response=ResponseKind.FINAL, after=0.0),
    Scenario(
        "08", "final_failure", "the response says that it failed",
        response=ResponseKind.FINAL, after=0.0, final_state=FAILED, reason="insufficient_funds",
    ),
    Scenario("09", "never_final", "accepted, stays pending for ever", final_state=None),
    Scenario("10", "lost_answer", "stored, connection dropped, then succeeds", response=ResponseKind.DROPPED),
    Scenario(
        "11", "lost_answer_declined", "stored, connection dropped, then refused",
        response=ResponseKind.DROPPED, final_state=FAILED, reason="insufficient_funds",
    ),
    _not_stored("12", "lost_request", "connection dropped and nothing stored", ResponseKind.DROPPED),
    Scenario(
        "13", "error_500", "stored, answers 500 without a code, then succeeds",
        response=ResponseKind.SERVER_ERROR,
    ),
    _not_stored("14", "error_500_not_stored", "answers 500 without a code, nothing stored", ResponseKind.SERVER_ERROR),
    _not_stored(
        "15", "business_500", "answers 500 with a business code, nothing stored",
        ResponseKind.BUSINESS_500, "payer_not_found",
    ),
    Scenario(
        "16", "unreadable", "stored, answers 200 and an unreadable body, then succeeds",
        response=ResponseKind.UNREADABLE,
    ),
    Scenario(
        "17", "halfway", "stored, closes the connection in the middle of the response",
        response=ResponseKind.TRUNCATED,
    ),
    Scenario("18", "slow", "stored, answers after twenty-five seconds", response=ResponseKind.SLOW),
    Scenario("19", "wrong_amount", "succeeds, states one unit less than asked", amount_error=-1_00),
    Scenario("20", "wrong_currency", "succeeds, states another currency", wrong_currency=True),
    Scenario("21", "hidden_amount", "succeeds, states no amount", hides_amount=True),
    Scenario(
        "22", "forged_callback", "a forged callback claims success, then it is refused",
        final_state=FAILED, reason="rejected_by_payer", after=4.0, callbacks=CallbackBehaviour.FORGED,
    ),
    Scenario(
        "23", "duplicate_callback", "succeeds, the same callback comes twice",
        callbacks=CallbackBehaviour.TWICE,
    ),
    Scenario(
        "24", "late_callback", "succeeds, then a late callback claims failure",
        callbacks=CallbackBehaviour.CONTRADICTED,
    ),
    Scenario("25", "no_callback", "succeeds, no callback", callbacks=CallbackBehaviour.NONE),
    _not_stored("26", "unauthorized", "answers 401", ResponseKind.UNAUTHORIZED),
    _not_stored("27", "rate_limited", "answers 429 with Retry-After", ResponseKind.RATE_LIMITED),
    _not_stored("28", "unavailable", "answers 503, nothing stored", ResponseKind.UNAVAILABLE),
    Scenario(
        "29", "unavailable_stored", "stored, answers 503 all the same, then succeeds",
        response=ResponseKind.UNAVAILABLE,
    ),
    _not_stored("30", "not_configured", "refused: the account is not open for it", ResponseKind.NOT_CONFIGURED),
    Scenario("31", "duplicate", "stored, answers like a repeat, then succeeds", response=ResponseKind.DUPLICATE),
    Scenario("32", "pending_long", "accepted, final after a minute", after=60.0),
    _not_stored(
        "33", "ambiguous_refusal", "refused; a refund by a code that may mean our own balance",
        ResponseKind.AMBIGUOUS, "payer_not_found",
    ),
)  # fmt: skip

BY_NAME: Final = {scenario.name: scenario for scenario in (*SCENARIOS, WAITS, PROMPT)}
_BY_DIGITS: Final = {scenario.digits: scenario for scenario in SCENARIOS}


def for_debit(digits: str) -> Scenario | None:
    """The scenario that the last digits of a number or an amount choose for an initiation."""
    prefix, suffix = digits[-4:-2], digits[-2:]
    if suffix not in _BY_DIGITS:
        return None
    return {"90": _BY_DIGITS[suffix], "91": BY_NAME["succeeds"], "92": BY_NAME["succeeds"]}.get(prefix)


def for_credit(digits: str) -> Scenario | None:
    return _BY_DIGITS.get(digits[-2:]) if digits[-4:-2] == "91" else None


def for_status(digits: str) -> Scenario | None:
    return _BY_DIGITS.get(digits[-2:]) if digits[-4:-2] == "92" else None


def with_timing(scenario: Scenario, after: float | None, delay: float | None) -> Scenario:
    """The scenario with other times, in seconds; None keeps its own."""
    return replace(
        scenario,
        after=scenario.after if after is None else after,
        delay=scenario.delay if delay is None else delay,
    )
