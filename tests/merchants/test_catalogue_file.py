"""The catalogue file: what the packaged one holds, and that every fault is named precisely."""

from collections.abc import Callable
from pathlib import Path

import pytest

from guichet.merchants.catalogue_file import CatalogueFileError, load_catalogue
from guichet.settings import SettingsError

Write = Callable[[str], Path]

ENTRY = """
[[modes]]
id = 1
operator = "mtn"
name = "MTN MoMo"
type = "mobile_money"
fee_percent = "1.75"
fee_fixed = "0"
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def _write(text: str) -> Path:
        path = tmp_path / "modes.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return _write


def test_the_packaged_file_numbers_its_modes_from_one_without_gaps() -> None:
    modes = load_catalogue(None).modes

    assert [mode.id for mode in modes] == list(range(1, 22))
    assert all(mode.active and mode.logo is None for mode in modes)


def test_no_packaged_hint_claims_to_be_confirmed_by_the_operator() -> None:
    # All of them rest on what other clients of the operators do.
    assert not [mode.operator for mode in load_catalogue(None).modes if mode.otp_hint_verified]


def test_packaged_hints_exist_only_where_a_code_is_required() -> None:
    hinted = {mode.operator for mode in load_catalogue(None).modes if mode.otp_hint}

    assert hinted == {"coris", "orange_bf", "orange_sn"}


def test_the_packaged_codes_that_are_texted_on_request() -> None:
    assert [mode.operator for mode in load_catalogue(None).modes if mode.sends_code] == ["coris"]


def test_a_file_of_ones_own_replaces_the_packaged_one(write: Write) -> None:
    text = ENTRY + (
        'country = "Bénin"\ncountry_code = "BJ"\ndial_code = "229"\nrequires_otp = true\nactive = false\n'
        'otp_hint = { fr = "Composez *1#", en = "Dial *1#" }\notp_hint_verified = true\n'
        'requires_return_url = true\nlogo = "https://example.com/mtn.svg"\n'
    )
    [mode] = load_catalogue(write(text.replace('fee_fixed = "0"', 'fee_fixed = "25.5"'))).modes

    assert (mode.id, mode.operator, mode.name, mode.type) == (1, "mtn", "MTN MoMo", "mobile_money")
    assert (mode.fee_percent, mode.fee_fixed) == (17_500, 2_550)
    assert (mode.country, mode.country_code, mode.dial_code) == ("Bénin", "BJ", "229")
    assert (mode.requires_otp, mode.requires_return_url, mode.active) == (True, True, False)
    assert (mode.otp_hint, mode.otp_hint_verified) == ({"fr": "Composez *1#", "en": "Dial *1#"}, True)
    assert mode.logo == "https://example.com/mtn.svg"


def test_what_is_absent_has_its_default(write: Write) -> None:
    [mode] = load_catalogue(write(ENTRY)).modes

    assert (mode.country, mode.country_code, mode.dial_code, mode.logo, mode.otp_hint) == (None,) * 5
    assert (mode.requires_otp, mode.requires_return_url, mode.active, mode.otp_hint_verified) == (False,) * 2 + (
        True,
        False,
    )


@pytest.mark.parametrize(
    ("percent", "kept"), [("0", 0), ("100", 1_000_000), ("0.0001", 1), ("1.75", 17_500), ("03.5", 35_000)]
)
def test_fee_rates_are_ten_thousandths_of_a_percent(write: Write, percent: str, kept: int) -> None:
    [mode] = load_catalogue(write(ENTRY.replace('"1.75"', f'"{percent}"'))).modes

    assert mode.fee_percent == kept


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('fee_percent = "-1"', "fee_percent"),
        ('fee_percent = "100.0001"', "fee_percent"),
        ('fee_percent = "1.23456"', "fee_percent"),
        ('fee_percent = "1,75"', "fee_percent"),
        ('fee_percent = "1e2"', "fee_percent"),
        ('fee_percent = "1_0"', "fee_percent"),
        ('fee_percent = " 1"', "fee_percent"),
        ('fee_percent = "NaN"', "fee_percent"),
        ('fee_percent = "Infinity"', "fee_percent"),
        ('fee_percent = ""', "fee_percent"),
        ('fee_percent = "٣"', "fee_percent"),
        ("fee_percent = 1.75", "fee_percent"),
        ("fee_percent = 1", "fee_percent"),
        ('fee_fixed = "0.001"', "fee_fixed"),
        ('fee_fixed = "10000000000"', "fee_fixed"),
        ("fee_fixed = 100", "fee_fixed"),
        ("id = 0", "id"),
        ('id = "1"', "id"),
        ("id = true", "id"),
        ("id = 1.0", "id"),
        ("id = 2147483648", "id"),
        ('operator = ""', "operator"),
        ('operator = "mtn bj"', "operator"),
        (f'operator = "{"m" * 33}"', "operator"),
        ("operator = 5", "operator"),
        ('name = ""', "name"),
        ('name = "two\\nlines"', "name"),
        ('name = " MTN"', "name"),
        ('type = "cash"', "type"),
        ("type = []", "type"),
        ('country = ""', "country"),
        ('country_code = "bj"', "country_code"),
        ('country_code = "BEN"', "country_code"),
        ('dial_code = "+229"', "dial_code"),
        ("dial_code = 229", "dial_code"),
        ('logo = "http://example.com/a.svg"', "logo"),
        ('logo = ""', "logo"),
        ('requires_otp = "yes"', "requires_otp"),
        ("requires_return_url = 1", "requires_return_url"),
        ("active = 0", "active"),
        ('otp_hint = "Composez"', "otp_hint"),
        ('otp_hint = { fr = "Composez" }', "otp_hint"),
        ('otp_hint = { fr = "Composez", en = " " }', "otp_hint"),
        ('otp_hint = { fr = "a", en = "b", de = "c" }', "otp_hint"),
        ("otp_hint_verified = true", "otp_hint_verified"),
        ("sends_code = true", "sends_code"),
        ('sends_code = "yes"', "sends_code"),
        ('fee_percents = "1"', "fee_percents"),
    ],
)
def test_a_bad_value_is_refused_naming_the_entry_and_the_key(write: Write, line: str, key: str) -> None:
    kept = [old for old in ENTRY.splitlines() if not old.startswith(f"{key} =")]
    path = write("\n".join([*kept, line]))

    with pytest.raises(CatalogueFileError) as caught:
        load_catalogue(path)

    assert str(caught.value).startswith(f"{path}: mode 1")
    assert f": {key} " in str(caught.value)


@pytest.mark.parametrize("key", ["id", "operator", "name", "type", "fee_percent", "fee_fixed"])
def test_a_missing_key_is_named(write: Write, key: str) -> None:
    text = "\n".join(line for line in ENTRY.splitlines() if not line.startswith(f"{key} ="))

    with pytest.raises(CatalogueFileError, match=rf"mode 1.*: {key} is missing\."):
        load_catalogue(write(text))


def test_an_id_used_twice_is_refused(write: Write) -> None:
    with pytest.raises(CatalogueFileError, match=r"mode 2 \(moov\): id is already used by mode 1\."):
        load_catalogue(write(ENTRY + ENTRY.replace('"mtn"', '"moov"')))


def test_an_operator_used_twice_is_refused_whatever_its_case(write: Write) -> None:
    with pytest.raises(CatalogueFileError, match=r"mode 2 \(MTN\): operator is already used by mode 1\."):
        load_catalogue(write(ENTRY + ENTRY.replace('"mtn"', '"MTN"').replace("id = 1", "id = 2")))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "modes must hold at least one"),
        ("modes = []", "modes must hold at least one"),
        ("modes = 3", "modes must hold at least one"),
        ("modes = [3]", "mode 1 must be a table"),
        ("mode = 3", "mode is unknown"),
        ("[[modes]", "is not a TOML file"),
    ],
)
def test_a_file_of_another_shape_is_refused(write: Write, text: str, sentence: str) -> None:
    with pytest.raises(CatalogueFileError, match=sentence):
        load_catalogue(write(text))


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"absent\.toml cannot be read"):
        load_catalogue(tmp_path / "absent.toml")


def test_a_file_that_is_not_text_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "modes.toml"
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(CatalogueFileError, match="is not a TOML file"):
        load_catalogue(path)
