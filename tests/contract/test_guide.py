"""The merchant's guides say what the contract says, and show the very receivers that are tested."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from guichet.clock import HOUR, MINUTE, SECOND
from guichet.domain import catalogue
from guichet.domain.failures import REFUSAL_REASONS
from guichet.domain.payments import INCIDENT_AGE, NEVER_ARRIVED_PERIOD, POLL_INTERVALS
from guichet.merchants.catalogue_file import load_catalogue
from tests.contract.tables import column, table, tables

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    file.name: file.read_text(encoding="utf-8") for file in (DOCS / "guide-marchand.md", DOCS / "guide-webhooks.md")
}
GUIDE = "\n".join(PAGES.values())
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)

FLAGS = (("OTP", "OTP"), ("return_url", "Return URL"))


def _blocks(language: str) -> list[str]:
    return [text for kind, text in BLOCKS if kind == language]


def _data_shown() -> list[Any]:
    """The `data` of each example that is not an error."""
    return [example["data"] for block in _blocks("json") if "data" in (example := json.loads(block))]


def _chapter(title: str) -> str:
    """The text under a heading of the guide, up to the next heading of its level or above."""
    match = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^##? |\Z)", GUIDE, re.MULTILINE | re.DOTALL)
    assert match, f"the guide has no chapter {title!r}"
    return match[2]


def _first_cells(text: str) -> list[str]:
    rows = re.findall(r"^\| ?(.+?) ?\|", text, re.MULTILINE)
    return [cell.strip("` ") for cell in rows]


@pytest.mark.parametrize(
    ("language", "files"),
    [
        ("python", ["verify_signature.py", "handler.py"]),
        ("php", ["verify_signature.php", "handler.php"]),
        ("js", ["verify_signature.mjs", "handler.mjs"]),
        ("go", ["handler.go"]),
        ("ruby", ["handler.rb"]),
        ("java", ["Handler.java"]),
    ],
)
def test_the_receivers_shown_are_the_ones_that_are_tested(language: str, files: list[str]) -> None:
    assert _blocks(language) == [(DOCS / "samples" / file).read_text(encoding="utf-8") for file in files]


def test_the_package_has_the_guides_as_they_are() -> None:
    for name, text in PAGES.items():
        assert (DOCS.parent / "guichet" / "data" / name).read_text(encoding="utf-8") == text


def test_every_json_example_is_json_in_the_envelope_or_a_notification() -> None:
    examples = [json.loads(block) for block in _blocks("json")]

    assert examples
    for example in examples:
        fields = {row["Field"] for row in table("resource webhook-envelope")}
        assert set(example) in ({"success", "data"}, {"success", "error"}, fields)


@pytest.mark.parametrize(("example", "resource"), [(0, "payment"), (1, "fee-quote"), (2, "refund")])
def test_examples_show_exactly_the_fields_of_the_resource(example: int, resource: str) -> None:
    shown = _data_shown()[example]

    assert list(shown) == [row["Field"] for row in tables("resource")[resource]]
    for part in ("payment_mode", "customer", "failure", "payment_link"):
        if shown.get(part) is not None:
            assert list(shown[part]) == [row["Field"] for row in tables("resource")[f"payment.{part}"]]


def test_the_fees_of_the_examples_are_those_of_the_packaged_catalogue() -> None:
    quote = _data_shown()[1]
    mode = load_catalogue(None).choose(quote["operator"], quote["payment_mode_id"])

    assert (quote["fee_percent"], quote["fee_fixed"]) == (mode.fee_percent / 10_000, mode.fee_fixed / 100)
    assert quote["fee_amount"] == catalogue.quote(mode, quote["amount"] * 100).fee_amount / 100
    assert quote["total_amount"] == quote["amount"] + quote["fee_amount"]


def test_error_codes_are_all_there_with_their_status() -> None:
    shown = re.findall(r"^\| `(\w+)` \| (\d+) \|", _chapter("Erreurs"), re.MULTILINE)

    assert shown == [(row["Code"], row["HTTP"]) for row in table("errors")]


def test_failures_are_explained_with_a_sentence_of_ours() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", _chapter("Comprendre un échec"), re.MULTILINE)
    sentences = {(failure.code, failure.message) for failure in REFUSAL_REASONS.values()}

    assert [code for code, _ in rows] == column("failure-codes", "Code")
    assert set(rows) <= sentences
    [example] = [json.loads(block)["error"] for block in _blocks("json") if '"payment_failed"' in block]
    assert (example["reason"], example["message"]) in sentences


def test_conflicts_are_all_explained() -> None:
    for row in table("error-reasons"):
        if row["Code"] == "conflict" and row["Emitted"] == "yes":
            assert f"`{row['Reason']}`" in GUIDE


def test_events_headers_and_attempts_are_all_there() -> None:
    cells = _first_cells(PAGES["guide-webhooks.md"])

    expected = ["Événement", "---", *column("events", "Event"), "En-tête", "---", *column("webhook-headers", "Header")]
    assert cells == [*expected, "Tentative", "---", *column("retry-schedule", "Attempt")]


def test_the_test_numbers_are_those_of_the_contract() -> None:
    rows = re.findall(r"^\| `?(\w+)`? \| `(\d+)[^|]*\| ([^|]+)\|", _chapter("Numéros de test"), re.MULTILINE)

    suffixes = column("sandbox", "Suffix")
    assert [suffix.replace("autre", "other") for suffix, _, _ in rows] == suffixes
    for (_, status, final), row in zip(rows, table("sandbox"), strict=True):
        assert status == row["HTTP"]
        assert f"`{row['Final status']}`" in final
        if row["Delay (seconds)"] not in ("", "0"):
            assert f"{row['Delay (seconds)']} secondes" in final


def test_the_test_scenarios_are_those_of_the_contract() -> None:
    assert _first_cells(_chapter("Bac à sable"))[2:] == column("sandbox-scenarios", "Scenario")


def test_operators_are_all_there_under_their_country() -> None:
    chapter = _chapter("Paiement Mobile Money")
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \| ([^|]+) \|", chapter, re.MULTILINE)
    shown = {
        (country, dial, code, "OTP" if "OTP" in note else "", "return_url" if "return_url" in note else "")
        for country, dial, codes in rows
        for code, note in re.findall(r"`(\w+)`((?: \([^)]*\))?)(?:,|$)", codes)
    }

    assert shown == {
        (row["Country"], row["Dial code"], row["Code"], *(name if row[key] == "yes" else "" for name, key in FLAGS))
        for row in table("operators")
        if row["Type"] == catalogue.MOBILE_MONEY
    }


@pytest.mark.parametrize("path", sorted(set(column("endpoints", "Path"))))
def test_the_guide_mentions_every_endpoint_of_the_contract(path: str) -> None:
    called = re.escape(path).replace(r"\{reference\}", r"(?:\{reference\}|commande-\d+)")

    assert re.search(rf'(?:\$GUICHET|`(?:GET|POST|PUT) ){called}["?`]', GUIDE)


def test_the_contents_lead_to_chapters_that_exist() -> None:
    linked = re.findall(r"\]\([\w.-]*#([^)]+)\)", GUIDE)
    titles = re.findall(r"^#+ (.+)$", GUIDE, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}

    assert linked
    assert set(linked) <= anchors


def test_every_operator_is_in_the_table_of_pending_times_once() -> None:
    rows = re.findall(r"^\| ([^|]*`[^|]+) \|[^|]+\|[^|]+\|$", _chapter("Suivre un paiement"), re.MULTILINE)
    listed = [code for row in rows for code in re.findall(r"`(\w+)`", row)]

    assert sorted(listed) == sorted(row["Code"] for row in table("operators"))


def test_the_polls_that_are_told_are_those_that_are_made() -> None:
    chapter = _chapter("Suivre un paiement").replace("\n", " ")
    made = [sum(POLL_INTERVALS[: count + 1]) // SECOND for count in range(5)]

    assert f"après {', '.join(map(str, made[:-1]))} et {made[-1]} secondes" in chapter
    assert POLL_INTERVALS[-1] == HOUR
    assert f"Après {INCIDENT_AGE // HOUR} heures" in chapter
    assert f"{NEVER_ARRIVED_PERIOD // MINUTE} minutes pour établir" in chapter


def test_the_currency_of_each_operator_is_that_of_the_providers_page() -> None:
    page = (DOCS / "providers" / "README.md").read_text(encoding="utf-8")
    currencies = dict(re.findall(r"^\| (\w+) \| (XOF|XAF) \|", page, re.MULTILINE))
    chapter = _chapter("Devise de l'opérateur")

    assert set(currencies) == {row["Code"] for row in table("operators") if row["Type"] == catalogue.MOBILE_MONEY}
    others = [code for code, currency in currencies.items() if currency != "XOF"]
    assert set(re.findall(r"`(\w+_\w+)`", chapter)) == set(others)
