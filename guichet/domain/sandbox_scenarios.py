"""Test scenarios: what a payment made with a test key can be asked to go through, beyond the test numbers
(docs/contract.md, "The test environment").

The scenario is kept in `provider_data` of the payment, where each provider keeps what it needs later: the sandbox gets
it back with every call, a restart loses nothing, and live payments have no column for it.
"""

from typing import Final, Literal, get_args

import msgspec

from guichet.domain.ids import LinkId
from guichet.domain.payments import ApiPayment, Payment
from guichet.domain.records import Record

TestScenario = Literal[
    "refund_failed",
    "refund_pending",
    "redirect",
    "wrong_otp",
    "expired",
    "payment_link",
    "amount_mismatch",
    "webhook_twice",
    "webhook_out_of_order",
]
TEST_SCENARIOS: Final[tuple[TestScenario, ...]] = get_args(TestScenario)
#: Scenarios that replace what the phone number decides. A card's result is chosen on its page.
MOBILE_MONEY_ONLY: Final[frozenset[TestScenario]] = frozenset({"redirect", "wrong_otp", "expired", "amount_mismatch"})

#: The names of `provider_data` in the test environment: the scenario, and the microseconds by which the merchant's test
#: clock was advanced since the payment was created (`sandbox/clock.py`).
SCENARIO: Final = "test_scenario"
CLOCK_ADVANCED: Final = "clock_advanced"


class SampleLink(Record, frozen=True):
    """The payment link that a payment of the scenario `payment_link` names. No such link exists: links are live only
    (D17)."""

    id: LinkId
    external_id: str


SAMPLE_LINK: Final = SampleLink(LinkId(1), "lien-de-test")


def scenario_in(provider_data: str | None) -> TestScenario | None:
    """The scenario in the stored `provider_data` of a test payment; None without one."""
    if provider_data is None:
        return None
    name = msgspec.json.decode(provider_data, type=dict[str, str]).get(SCENARIO)
    return next((scenario for scenario in TEST_SCENARIOS if scenario == name), None)


def scenario_of(payment: Payment | ApiPayment) -> TestScenario | None:
    return scenario_in(payment.provider_data) if payment.env == "test" else None


def sample_link(payment: Payment | ApiPayment) -> SampleLink | None:
    """The link that the objects of this payment show though it was not paid through one; None for every other."""
    return SAMPLE_LINK if scenario_of(payment) == "payment_link" else None
