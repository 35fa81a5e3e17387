"""fee = amount × percent / 100 + fixed, half up to the hundredth: the service against fractions, over HTTP."""

import json
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guichet.domain.catalogue import ModeOverride
from guichet.domain.money import Hundredths
from guichet.merchants.catalogue import set_override
from tests.service_fixture import ServiceFixture

MODES = 21
AMOUNTS = st.one_of(
    st.integers(100, 9_999_999_900),
    st.integers(1, 99_999_999).map(lambda units: units * 100),
    st.sampled_from([100, 101, 9_999_999_900, 9_999_999_899]),
)
PATIENT = settings(
    max_examples=75, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def _exactly(raw: bytes) -> Any:
    return json.loads(raw, parse_float=Decimal)["data"]


def _spelled(hundredths: int) -> str:
    units, rest = divmod(hundredths, 100)
    return f"{units}.{rest:02d}"


def _check(quote: Any, hundredths: int, percent: Fraction, fixed: Fraction) -> None:
    amount = Fraction(hundredths, 100)
    exact = amount * percent / 100 + fixed
    fee = Fraction(floor(exact * 100 + Fraction(1, 2)), 100)
    assert Fraction(quote["amount"]) == amount
    assert Fraction(quote["fee_amount"]) == fee
    assert Fraction(quote["total_amount"]) == amount + fee
    assert (Fraction(quote["fee_percent"]), Fraction(quote["fee_fixed"])) == (percent, fixed)


@given(hundredths=AMOUNTS, mode_id=st.integers(1, MODES))
@PATIENT
async def test_the_fees_of_the_catalogue(sqlite_service: ServiceFixture, hundredths: int, mode_id: int) -> None:
    merchant = await sqlite_service.merchant()
    [mode] = [m for m in _exactly((await merchant.get("/payment-modes")).raw) if m["id"] == mode_id]
    body = f'{{"amount":{_spelled(hundredths)},"payment_mode_id":{mode_id}}}'.encode()
    quote = _exactly((await merchant.post("/payment-modes/fees", body)).raw)
    _check(quote, hundredths, Fraction(mode["fee_percent"]), Fraction(mode["fee_fixed"]))


@given(hundredths=AMOUNTS, rate=st.integers(0, 100 * 10_000), fixed=st.integers(0, 1_000_000))
@PATIENT
async def test_any_fee_an_operator_of_the_service_may_set(
    sqlite_service: ServiceFixture, hundredths: int, rate: int, fixed: int
) -> None:
    """Rates have four decimals of a percent, fixed parts two of the unit; a payment is charged what was quoted."""
    merchant = await sqlite_service.merchant()
    override = ModeOverride(merchant.id, "VISA", active=None, fee_percent=rate, fee_fixed=Hundredths(fixed))
    await set_override(sqlite_service.ctx.db, override)
    body = f'{{"amount":{_spelled(hundredths)},"operator":"visa","currency":"EUR",'.encode()
    body += b'"customer":{"firstname":"A","lastname":"B","email":"a@example.com"}}'
    quote = _exactly((await merchant.post("/payment-modes/fees", body)).raw)
    _check(quote, hundredths, Fraction(rate, 10_000), Fraction(fixed, 100))
    payment = _exactly((await merchant.post("/payments", body)).raw)
    for field in ("amount", "fee_amount", "total_amount"):
        assert payment[field] == quote[field]
