"""Integer hundredths: in, out, rounded; never through a float."""

import json
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guichet.domain import money
from guichet.domain.money import Hundredths

HUNDREDTHS = st.integers(-(10**14), 10**14)


@given(hundredths=HUNDREDTHS)
def test_what_is_written_reads_back_exactly(hundredths: int) -> None:
    text = money.plain(hundredths)

    assert money.to_hundredths(Decimal(text)) == hundredths
    assert json.loads(text, parse_float=Decimal) == Decimal(hundredths) / 100


@given(hundredths=HUNDREDTHS)
def test_no_useless_fraction_is_written(hundredths: int) -> None:
    text = money.plain(hundredths)

    assert "." not in text or not text.endswith(("0", "."))


@pytest.mark.parametrize(
    ("hundredths", "text"),
    [(5000_00, "5000"), (87_50, "87.5"), (5, "0.05"), (0, "0"), (-87_50, "-87.5"), (-5, "-0.05"), (10, "0.1")],
)
def test_amounts_on_the_wire(hundredths: int, text: str) -> None:
    assert money.plain(hundredths) == text


@pytest.mark.parametrize(
    ("value", "hundredths"),
    [
        (5000, 500_000),
        (0, 0),
        (-3, -300),
        (Decimal("12.0"), 1200),
        (Decimal("12.34"), 1234),
        (Decimal("1e3"), 100_000),
        (Decimal("1E-2"), 1),
        (Decimal("0.001"), None),
        (Decimal("12.345"), None),
        (Decimal("NaN"), None),
        (Decimal("Infinity"), None),
        (Decimal("1e400"), None),
        (Decimal("1e-400"), None),
        (Decimal("0e-400"), 0),
    ],
)
def test_reading_amounts(value: int | Decimal, hundredths: int | None) -> None:
    assert money.to_hundredths(value) == hundredths


@pytest.mark.parametrize(
    ("hundredths", "currency", "whole"),
    [(100, "XOF", True), (101, "XOF", False), (150, "XAF", False), (101, "EUR", True), (101, "USD", True)],
)
def test_currencies_without_subdivision_take_whole_amounts_only(
    hundredths: int, currency: money.Currency, whole: bool
) -> None:
    assert money.has_whole_units(Hundredths(hundredths), currency) is whole


@given(hundredths=st.integers(0, 10**12), currency=st.sampled_from(money.CURRENCIES))
def test_rounding_to_a_currency_is_half_up(hundredths: int, currency: money.Currency) -> None:
    step = 1 if money.DECIMALS[currency] else 100
    expected = (Fraction(hundredths, step) + Fraction(1, 2)).__floor__() * step

    assert money.round_to_currency(Hundredths(hundredths), currency) == expected
    assert money.has_whole_units(Hundredths(expected), currency)


@pytest.mark.parametrize(("hundredths", "rounded"), [(5087_49, 5087_00), (5087_50, 5088_00), (5087_51, 5088_00)])
def test_half_a_franc_rounds_up(hundredths: int, rounded: int) -> None:
    assert money.round_to_currency(Hundredths(hundredths), "XOF") == rounded


@pytest.mark.parametrize(
    ("hundredths", "currency", "text"),
    [
        (5000_00, "XOF", "5\u202f000\u00a0F\u00a0CFA"),
        (5087_50, "XOF", "5\u202f087,50\u00a0F\u00a0CFA"),
        (1_000_000_00, "XAF", "1\u202f000\u202f000\u00a0F\u00a0CFA"),
        (12_50, "EUR", "12,50\u00a0€"),
        (12_00, "EUR", "12,00\u00a0€"),
        (-12_05, "USD", "-12,05\u00a0$\u00a0US"),
    ],
)
def test_amounts_for_french_readers(hundredths: int, currency: money.Currency, text: str) -> None:
    assert money.french(hundredths, currency) == text


@pytest.mark.parametrize(
    ("text", "places", "value"),
    [
        ("1.75", 4, 17_500),
        ("25", 2, 2_500),
        ("0.005", 2, 1),
        ("0.0049", 2, 0),
        ("0", 4, 0),
        ("-1", 2, None),
        ("-0.001", 2, None),
        ("abc", 2, None),
        ("", 2, None),
        ("1,5", 2, None),
        ("NaN", 2, None),
        ("Infinity", 2, None),
        ("1e13", 2, None),
        ("1e999999", 2, None),
    ],
)
def test_numbers_typed_by_people(text: str, places: int, value: int | None) -> None:
    assert money.parse_decimal(text, places) == value


@pytest.mark.parametrize(
    ("typed", "places", "value"),
    [
        ("5 000", 2, 500_000),
        ("5\u202f000", 2, 500_000),
        (" 12,5 ", 2, 1_250),
        ("12.50", 2, 1_250),
        ("1,7500", 4, 17_500),
        ("5.000", 2, None),
        ("5,000", 2, None),
        ("5.000,00", 2, None),
        ("1e3", 2, None),
        ("-5", 2, None),
        ("+5", 2, None),
        ("٥", 2, None),
        ("5.", 2, None),
        ("", 2, None),
    ],
)
def test_numbers_of_forms_are_never_guessed(typed: str, places: int, value: int | None) -> None:
    assert money.parse_typed(typed, places) == value


@given(value=st.decimals(0, 10**9, places=6, allow_nan=False), places=st.integers(0, 6))
def test_typed_numbers_are_rounded_half_up(value: Decimal, places: int) -> None:
    expected = (Fraction(value) * 10**places + Fraction(1, 2)).__floor__()

    assert money.parse_decimal(str(value), places) == expected
