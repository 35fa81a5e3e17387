"""The payments that the customers of a trial make: which operator, whose number, which scenario of the simulator.

An order is a function of the seed and its number alone, so that a trial can be run again. The last four digits of the
number, or of the total where the provider's API has no number, choose the scenario (`guichet_simulator/scenarios.py`).
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from guichet.domain.catalogue import Catalogue, quote
from guichet.domain.money import Hundredths, round_to_currency
from guichet.merchants.catalogue_file import load_catalogue

#: How many of a thousand orders meet each scenario, by its digits; the others succeed (01). Scenarios that only a
#: person can end, or that take a quarter of an hour to end, are rare.
DEBIT_SCENARIOS: Final[Mapping[str, int]] = {
    "03": 40, "04": 40, "05": 10, "06": 40, "07": 60, "08": 20, "09": 1, "10": 20, "11": 10, "12": 2, "13": 20,
    "14": 2, "15": 10, "16": 20, "17": 20, "18": 3, "19": 3, "20": 2, "21": 2, "22": 15, "23": 40, "24": 40,
    "25": 60, "26": 10, "27": 20, "28": 3, "29": 20, "30": 10, "31": 10,
}  # fmt: skip
#: Of a thousand orders: those whose refund, or whose first status call, meets a scenario.
CREDIT_SHARE: Final = 60
STATUS_SHARE: Final = 40
#: Without those in which each repeat of a refund meets the same fault again, so that it never ends.
_CREDIT_SCENARIOS: Final = ("01", "03", "06", "07", "10", "11", "13", "16", "17", "23", "25", "29", "33")
_STATUS_SCENARIOS: Final = ("10", "13", "16", "17", "26", "27", "28")
_SUCCEEDS: Final = "01"
#: A first request answered like a repeat: Coris words that like a refusal, so nobody can tell that it was taken.
_DUPLICATE: Final = "31"

#: Dial code of the numbers of each operator, and how often it is chosen.
_OPERATORS: Final[Mapping[str, tuple[str, int]]] = {
    "mtn": ("229", 20), "moov": ("229", 12), "celtiis_bj": ("229", 3), "coris": ("229", 4), "moov_bf": ("226", 4),
    "orange_bf": ("226", 4), "wave_bf": ("226", 2), "mtn_ci": ("225", 8), "moov_ci": ("225", 3),
    "orange_ci": ("225", 6), "wave_ci": ("225", 8), "orange_ml": ("223", 4), "mobicash_ml": ("223", 2),
    "orange_sn": ("221", 8), "free_sn": ("221", 3), "wave_sn": ("221", 8), "togocom_tg": ("228", 2),
    "moov_tg": ("228", 2), "mtn_cg": ("242", 2), "VISA": ("", 5), "MASTERCARD": ("", 3),
}  # fmt: skip
#: Their first provider takes the scenario from the total, not from the number.
_BY_AMOUNT: Final = frozenset({"VISA", "MASTERCARD", "orange_ci", "orange_ml"})
_IN_XAF: Final = frozenset({"mtn_cg"})
_LARGEST_AMOUNT: Final = 500_000


@dataclass(frozen=True, slots=True)
class Order:
    """`body`: what the merchant posts to /payments. `scenario`: the four digits that choose it."""

    number: int
    merchant: int
    external_id: str
    scenario: str
    body: dict[str, Any]


def order(seed: int, number: int, merchants: int, scenarios: Mapping[str, int] = DEBIT_SCENARIOS) -> Order:
    """The order with this number; `scenarios` as DEBIT_SCENARIOS."""
    drawn = random.Random(f"{seed}/order/{number}")
    [operator] = drawn.choices(list(_OPERATORS), [share for _, share in _OPERATORS.values()])
    scenario = scenario_digits(drawn, scenarios)
    if operator == "coris" and scenario.endswith(_DUPLICATE):
        scenario = f"90{_SUCCEEDS}"
    external_id = f"order-{seed}-{number}"
    body: dict[str, Any] = {"operator": operator, "external_id": external_id, "metadata": {"number": number}}
    if operator in _IN_XAF:
        body["currency"] = "XAF"
    if operator in _BY_AMOUNT:
        body["amount"] = _amount_with_total(operator, drawn.randrange(1, 90), scenario)
        last = "0000"
    else:
        # Where a provider keeps no reference of ours, a number and an amount are one payment's alone.
        body["amount"] = 500 + number % _LARGEST_AMOUNT
        last = scenario
    return Order(number, drawn.randrange(merchants), external_id, scenario, body | _customer(drawn, operator, last))


def scenario_digits(drawn: random.Random, scenarios: Mapping[str, int] = DEBIT_SCENARIOS) -> str:
    """The last four digits of a number or a total."""
    point = drawn.randrange(1000)
    for digits, share in scenarios.items():
        if point < share:
            return f"90{digits}"
        point -= share
    if point < CREDIT_SHARE:
        return f"91{drawn.choice(_CREDIT_SCENARIOS)}"
    if point < CREDIT_SHARE + STATUS_SHARE:
        return f"92{drawn.choice(_STATUS_SCENARIOS)}"
    return f"90{_SUCCEEDS}"


def _customer(drawn: random.Random, operator: str, last: str) -> dict[str, Any]:
    """The fields about the customer; `last`: the last four digits of the number."""
    fields: dict[str, Any] = {}
    dial, _ = _OPERATORS[operator]
    if dial:
        fields["phone_number"] = f"{dial}77{drawn.randrange(1000):03}{last}"
    else:
        fields["customer"] = {"firstname": "Awa", "lastname": "Diop", "email": "awa@example.com"}
    mode = catalogue().by_operator(operator)
    assert mode is not None, operator
    if mode.requires_otp:
        fields["otp"] = "123456"
    if mode.requires_return_url or not dial or operator in _BY_AMOUNT:
        fields["return_url"] = "https://shop.example/thanks"
    return fields


@cache
def catalogue() -> Catalogue:
    return load_catalogue(None)


@cache
def _amount_with_total(operator: str, thousands: int, scenario: str) -> int:
    """An amount whose total, fee included, ends with `scenario`: about `thousands` ten thousands."""
    mode = catalogue().by_operator(operator)
    assert mode is not None, operator
    for total in range(thousands * 10_000 + int(scenario), 10_000_000, 10_000):
        guess = int(total / (1 + mode.fee_percent / 1_000_000))
        for amount in range(guess - 2, guess + 3):
            quoted = quote(mode, Hundredths(amount * 100))
            if round_to_currency(quoted.total_amount, "XOF") == total * 100:
                return amount
    raise AssertionError(f"no amount of {operator} ends with {scenario}")
