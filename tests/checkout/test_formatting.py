"""Amounts, dates and numbers as people write them."""

from datetime import date
from zoneinfo import ZoneInfo

import pytest

from guichet.clock import Instant
from guichet.domain.money import Currency
from guichet.pages import formatting

NB, NARROW = "\u00a0", "\u202f"


@pytest.mark.parametrize(
    ("hundredths", "currency", "french", "english"),
    [
        (5_000_00, "XOF", f"5{NARROW}000{NB}F{NB}CFA", f"5,000{NB}F{NB}CFA"),
        (99_999_999_00, "XAF", f"99{NARROW}999{NARROW}999{NB}F{NB}CFA", f"99,999,999{NB}F{NB}CFA"),
        (12_50, "EUR", f"12,50{NB}€", "€12.50"),
        (1_234_00, "USD", f"1{NARROW}234,00{NB}${NB}US", "US$1,234.00"),
        (0, "XOF", f"0{NB}F{NB}CFA", f"0{NB}F{NB}CFA"),
    ],
)
def test_amounts_are_formatted_for_people(hundredths: int, currency: Currency, french: str, english: str) -> None:
    assert formatting.amount(hundredths, currency, "fr") == french
    assert formatting.amount(hundredths, currency, "en") == english


@pytest.mark.parametrize(
    ("stated", "currency", "french"),
    [
        (200000, "XOF", f"200{NARROW}000{NB}XOF"),
        ("87.5", "EUR", f"87,50{NB}EUR"),
        (1200.5, "GHS", f"1{NARROW}200,5{NB}GHS"),
        (12, None, "12"),
        ("a\u202e lot", "XOF", rf"a\u202e lot{NB}XOF"),
        (None, "XOF", ""),
    ],
)
def test_what_somebody_states_is_formatted_whatever_its_currency(
    stated: int | float | str | None, currency: str | None, french: str
) -> None:
    assert formatting.stated_amount(stated, currency, "fr") == french


@pytest.mark.parametrize(
    ("language", "zone", "shown"),
    [
        ("fr", "Africa/Dakar", "21 novembre 2026 à 10:15 (GMT)"),
        ("fr", "Africa/Porto-Novo", "21 novembre 2026 à 11:15 (GMT+1)"),
        ("en", "Africa/Brazzaville", "21 November 2026 at 11:15 (GMT+1)"),
        ("fr", "Asia/Kolkata", "21 novembre 2026 à 15:45 (GMT+5:30)"),
        ("en", "America/St_Johns", "21 November 2026 at 06:45 (GMT-3:30)"),
    ],
)
def test_dates_are_shown_in_the_time_zone_of_the_merchants(language: str, zone: str, shown: str) -> None:
    instant = Instant(1_795_256_130_000_000)  # 2026-11-21 10:15:30 UTC
    assert formatting.date_time(instant, language, ZoneInfo(zone)) == shown


def test_the_first_of_a_month_is_an_ordinal_in_french() -> None:
    assert formatting.long_date(date(2026, 11, 1), "fr") == "1er novembre 2026"
    assert formatting.long_date(date(2026, 11, 1), "en") == "1 November 2026"


def test_the_hours_after_23_00_utc_are_of_the_next_day_in_cotonou() -> None:
    instant = Instant(1_795_303_800_000_000)  # 2026-11-21 23:30:00 UTC
    assert formatting.date_time(instant, "fr", ZoneInfo("Africa/Porto-Novo")) == "22 novembre 2026 à 00:30 (GMT+1)"


@pytest.mark.parametrize(
    ("typed", "dial_code", "number"),
    [
        ("01 97 00 00 45", "229", "2290197000045"),
        ("01-97-00-00-45", "229", "2290197000045"),
        ("(01) 97.00.00.45", "229", "2290197000045"),
        ("+229 01 97 00 00 45", "229", "2290197000045"),
        ("00229 0197000045", "229", "2290197000045"),
        ("2290197000045", "229", "2290197000045"),
        ("+00229 01 97 00 00 45", "229", "2290197000045"),
        ("000229 0197000045", "229", "2290197000045"),
        ("22612345678", "226", "22612345678"),
        ("77 123 45 67", "221", "221771234567"),
        ("22112345", "221", "22122112345"),  # eight digits that happen to begin like the country's code
        ("+225 07 01 02 03 04", "229", "2250701020304"),
        ("call me", "229", "callme"),
        ("97000045", None, "97000045"),
    ],
)
def test_a_phone_number_is_accepted_in_every_common_form(typed: str, dial_code: str | None, number: str) -> None:
    assert formatting.international_number(typed, dial_code) == number


def test_a_shown_phone_number_is_partly_hidden() -> None:
    shown = formatting.masked_phone("2290197000045", "229").replace(NB, " ")
    assert shown == "+229 01 •• •• •• 45"
    foreign = formatting.masked_phone("2250701020304", "229")
    assert foreign.startswith("22")
    assert foreign.count("•") == 9


def test_countries_have_their_english_names() -> None:
    assert formatting.country_name("Bénin", "BJ", "fr") == "Bénin"
    assert formatting.country_name("Bénin", "BJ", "en") == "Benin"
    assert formatting.country_name("Atlantide", None, "en") == "Atlantide"


def test_a_masked_number_is_grouped_as_its_country_says_it() -> None:
    shown = [
        formatting.masked_phone(number, code) for number, code in (("2290197001267", "229"), ("221771234567", "221"))
    ]
    assert [each.replace("\u00a0", " ") for each in shown] == ["+229 01 •• •• •• 67", "+221 77 ••• •• 67"]


def test_a_country_is_named_in_the_readers_language() -> None:
    stated = ("Benin", "bj", "Côte d'Ivoire", "CI", "Terre")
    assert [formatting.stated_country(each, "fr") for each in stated] == [
        "Bénin",
        "Bénin",
        *2 * ["Côte d’Ivoire"],
        "Terre",
    ]
    assert formatting.stated_country("Bénin", "en") == "Benin"
