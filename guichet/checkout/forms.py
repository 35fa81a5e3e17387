"""Checks the fields of a payment's form; faults are sentences in the customer's language."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from unicodedata import category

from guichet.checkout.fields import LENGTHS, form_fields
from guichet.domain.catalogue import PaymentMode
from guichet.domain.emails import normalised_email
from guichet.pages import formatting
from guichet.pages.page_request import PageRequest


@dataclass(frozen=True, slots=True)
class Checked:
    """`typed` is shown again in the form, `clean` is used for the payment; `faults` is empty if there are none."""

    typed: dict[str, str]
    clean: dict[str, str]
    faults: dict[str, list[str]]


def check(page: PageRequest, mode: PaymentMode, form: Mapping[str, str]) -> Checked:
    """Checks every field that this mode needs, and reports all faults at once."""
    typed = {name: form.get(name, "").strip() for name in form_fields(mode)}
    clean: dict[str, str] = {}
    faults: dict[str, list[str]] = {}
    for name, value in typed.items():
        cleaned = _clean(mode, name, value)
        if cleaned is not None:
            clean[name] = cleaned
            continue
        kind = "wrong" if value else "missing"
        faults[name] = [page.text(f"fault.{name}.{kind}", example=formatting.example_number(mode.dial_code))]
    return Checked(typed, clean, faults)


def _clean(mode: PaymentMode, name: str, value: str) -> str | None:
    """None when the value is missing or wrong (docs/contract.md, "Requests")."""
    if not value or len(value) > LENGTHS[name] or any(category(character) in ("Cc", "Cs") for character in value):
        return None
    if name == "phone_number":
        return _phone(value, mode.dial_code)
    rule: Callable[[str], str | None] = _RULES.get(name, str)
    return rule(value)


def _phone(value: str, dial_code: str | None) -> str | None:
    digits = formatting.international_number(value, dial_code)
    shortest = len(dial_code or "") + 8 if digits.startswith(dial_code or "") else 8
    return digits if digits.isascii() and digits.isdigit() and shortest <= len(digits) <= 15 else None


def _otp(value: str) -> str | None:
    return value.replace(" ", "") or None


_RULES: Final[Mapping[str, Callable[[str], str | None]]] = {"email": normalised_email, "otp": _otp}
