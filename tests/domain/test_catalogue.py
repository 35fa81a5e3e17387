"""The fee rule against an independent exact computation, the debit bounds, overrides, and what a request may name."""

from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guichet.domain.catalogue import (
    CARD,
    MAX_DEBIT,
    MIN_DEBIT,
    MOBILE_MONEY,
    Catalogue,
    ModeOverride,
    PaymentMode,
    PaymentModeType,
    Quote,
    check_debit,
    quote,
)
from guichet.domain.errors import InvalidRequest
from guichet.domain.ids import MerchantId, PaymentModeId
from guichet.domain.money import MAX_AMOUNT, MIN_AMOUNT, Hundredths

AMOUNTS = st.integers(MIN_AMOUNT, MAX_AMOUNT)
RATES = st.integers(0, 1_000_000)
FIXED = st.integers(0, 10_000_00)


def a_mode(
    operator: str = "mtn",
    number: int = 1,
    *,
    kind: PaymentModeType = MOBILE_MONEY,
    fee_percent: int = 17_500,
    fee_fixed: int = 0,
    active: bool = True,
) -> PaymentMode:
    return PaymentMode(
        id=PaymentModeId(number),
        operator=operator,
        name=operator,
        type=kind,
        country=None,
        country_code=None,
        dial_code=None,
        fee_percent=fee_percent,
        fee_fixed=Hundredths(fee_fixed),
        requires_otp=False,
        requires_return_url=False,
        logo=None,
        active=active,
        otp_hint=None,
        otp_hint_verified=False,
    )


@given(amount=AMOUNTS, rate=RATES, fixed=FIXED)
def test_the_fee_is_the_contracts_formula_half_up_to_the_hundredth(amount: int, rate: int, fixed: int) -> None:
    main_unit, percent, fixed_part = Fraction(amount, 100), Fraction(rate, 10_000), Fraction(fixed, 100)
    exact = main_unit * percent / 100 + fixed_part

    quoted = quote(a_mode(fee_percent=rate, fee_fixed=fixed), Hundredths(amount))

    # Every denominator here divides a power of ten, so Decimal's own division is exact and rounds independently of us.
    rounded = (Decimal(exact.numerator) / Decimal(exact.denominator)).quantize(Decimal("0.01"), ROUND_HALF_UP)
    assert Decimal(quoted.fee_amount) / 100 == rounded
    assert quoted.total_amount == amount + quoted.fee_amount


@pytest.mark.parametrize(
    ("amount", "rate", "fixed", "fee"),
    [
        (5000_00, 17_500, 0, 87_50),  # 5000 at 1.75 %
        (1_00, 5_000, 0, 1),  # 0.005 rounds up
        (1_00, 4_999, 0, 0),  # 0.004999 rounds down
        (99_999_999_00, 1_000_000, 0, 99_999_999_00),
        (1_00, 0, 1, 1),
        (33_33, 35_000, 100_00, 101_17),  # 1.16655 + 100
    ],
)
def test_fees_worked_out_by_hand(amount: int, rate: int, fixed: int, fee: int) -> None:
    assert quote(a_mode(fee_percent=rate, fee_fixed=fixed), Hundredths(amount)).fee_amount == fee


def _debit(total: int, kind: PaymentModeType = MOBILE_MONEY) -> Quote:
    return Quote(a_mode(kind=kind, fee_percent=0), Hundredths(total - 1), Hundredths(1))


@pytest.mark.parametrize("total", [MIN_DEBIT, MIN_DEBIT + 1, MAX_DEBIT - 1, MAX_DEBIT])
def test_a_debit_at_the_bounds_passes(total: int) -> None:
    check_debit(_debit(total), "XOF")


@pytest.mark.parametrize(
    ("total", "said"), [(MIN_DEBIT - 1, "9.99 XOF"), (MAX_DEBIT + 1, "1000000.01 XOF"), (MAX_DEBIT * 7, "7000000 XOF")]
)
def test_a_debit_out_of_bounds_is_refused_with_the_computed_total(total: int, said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_debit(_debit(total), "XOF")

    assert said in caught.value.message
    assert caught.value.details == {"amount": [caught.value.message]}


@pytest.mark.parametrize("total", [MIN_DEBIT - 1, MAX_DEBIT + 1])
def test_cards_know_no_debit_bounds(total: int) -> None:
    check_debit(_debit(total, CARD), "XOF")


CATALOGUE = Catalogue([a_mode("mtn", 1), a_mode("VISA", 2, kind=CARD), a_mode("moov", 3, active=False)])


@pytest.mark.parametrize(
    ("operator", "number", "chosen"),
    [
        ("mtn", None, "mtn"),
        ("MTN", None, "mtn"),
        ("visa", None, "VISA"),
        (None, 2, "VISA"),
        ("Visa", 2, "VISA"),
    ],
)
def test_a_request_names_a_mode_by_code_by_id_or_by_both(operator: str | None, number: int | None, chosen: str) -> None:
    assert CATALOGUE.choose(operator, number).operator == chosen


@pytest.mark.parametrize(
    ("operator", "number", "fields"),
    [
        ("nobody", None, {"operator"}),
        ("moov", None, {"operator"}),
        ("", None, {"operator"}),
        (None, 3, {"payment_mode_id"}),
        (None, 99, {"payment_mode_id"}),
        ("mtn", 99, {"payment_mode_id"}),
        ("nobody", 1, {"operator"}),
        ("nobody", 99, {"operator", "payment_mode_id"}),
        ("mtn", 2, {"operator", "payment_mode_id"}),
    ],
)
def test_an_unknown_inactive_or_contradictory_mode_is_refused_on_its_fields(
    operator: str | None, number: int | None, fields: set[str]
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        CATALOGUE.choose(operator, number)

    assert set(caught.value.details or {}) == fields


def test_naming_nothing_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        CATALOGUE.choose(None, None)


def _override(
    merchant: int | None, operator: str = "mtn", active: bool | None = None, percent: int | None = None
) -> ModeOverride:
    return ModeOverride(None if merchant is None else MerchantId(merchant), operator, active, percent, None)


def test_a_merchants_fee_wins_over_the_global_one_in_whatever_order_they_come() -> None:
    overrides = [_override(7, percent=5), _override(None, percent=9)]

    for ordered in (overrides, overrides[::-1]):
        mode = CATALOGUE.with_overrides(ordered).by_operator("mtn")
        assert mode is not None
        assert mode.fee_percent == 5


def test_an_override_changes_only_what_it_says() -> None:
    mode = CATALOGUE.with_overrides([ModeOverride(None, "MTN", None, None, Hundredths(25_00))]).by_operator("mtn")

    assert mode is not None
    assert (mode.fee_percent, mode.fee_fixed, mode.active) == (17_500, 25_00, True)


@pytest.mark.parametrize(
    ("overrides", "open_"),
    [
        ([_override(None, active=False)], False),
        ([_override(7, active=False)], False),
        ([_override(None, active=False), _override(7, active=True)], False),
        ([_override(None, active=True), _override(7, active=False)], False),
        ([_override(None, active=True), _override(7, active=True)], True),
        ([_override(7, active=None)], True),
    ],
)
def test_a_globally_closed_mode_stays_closed_for_each_merchant(overrides: list[ModeOverride], open_: bool) -> None:
    assert ("mtn" in {mode.operator for mode in CATALOGUE.with_overrides(overrides).active()}) is open_


def test_a_mode_closed_by_the_file_can_be_opened_globally_only() -> None:
    assert CATALOGUE.with_overrides([_override(None, "moov", active=True)]).choose("moov", None).id == 3
    with pytest.raises(InvalidRequest):
        CATALOGUE.with_overrides([_override(7, "moov", active=True)]).choose("moov", None)


def test_an_override_of_an_operator_that_left_the_catalogue_is_ignored() -> None:
    assert CATALOGUE.with_overrides([_override(None, "gone", active=False)]).modes == CATALOGUE.modes
