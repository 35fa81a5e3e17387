"""The fields of a payment form for one mode: labels, hints, what the customer typed and what is wrong with it, in the
customer's language."""

from collections.abc import Callable, Mapping
from typing import Final
from unicodedata import category

from msgspec import field

from guichet.domain import money
from guichet.domain.catalogue import MOBILE_MONEY, PaymentMode
from guichet.domain.mails import normalised_email
from guichet.domain.money import Currency, Hundredths
from guichet.domain.records import Record
from guichet.pages import formatting
from guichet.pages.page_request import PageRequest

#: Fields of a payment form in the order of the page, and how long each may be (docs/contract.md, "Requests").
LENGTHS: Final = {"phone_number": 24, "otp": 16, "firstname": 100, "lastname": 100, "email": 150}
IDENTITY: Final = ("firstname", "lastname", "email")
_INPUT: Final = {
    "phone_number": ("tel", "tel", "tel"),
    "otp": ("text", "numeric", "one-time-code"),
    "firstname": ("text", "text", "given-name"),
    "lastname": ("text", "text", "family-name"),
    "email": ("email", "email", "email"),
}


class Field(Record, frozen=True):
    id: str
    name: str
    label: str
    type: str
    inputmode: str
    autocomplete: str
    maxlength: int
    value: str
    faults: list[str]
    focus: bool
    hint: str | None = None
    prefix: str | None = None
    #: How to get the code, and a warning while that is not confirmed.
    instructions: str | None = None
    caution: str | None = None
    #: Whether a button beside the field requests the code, and the sentence that says that it was sent.
    requestable: bool = False
    sent: str | None = None

    @property
    def described(self) -> str:
        """The ids of the texts about this field for `aria-describedby`, its faults first."""
        faults = [f"{self.id}-err{index or ''}" for index in range(len(self.faults))]
        sent = [f"{self.id}-sent"] if self.sent else []
        return " ".join([*faults, *sent, *([f"{self.id}-hint"] if self.hint else [])])


class FormInput(Record, frozen=True):
    """What a customer chose and typed; `faults`: field name → sentences.

    `code_sent`: the sentence that says that a code was sent.
    """

    operator: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[str, list[str]] = field(default_factory=dict)
    code_sent: str | None = None
    #: What the merchant said of its customer: it stands in the fields of every mode.
    known: Mapping[str, str] = field(default_factory=dict)


def form_fields(mode: PaymentMode) -> list[str]:
    """The fields a customer fills in for this mode."""
    names = ["phone_number"] if mode.type == MOBILE_MONEY else list(IDENTITY)
    return [*names, "otp"] if mode.requires_otp else names


def fields(
    page: PageRequest, mode: PaymentMode, key: str, total_amount: Hundredths, currency: Currency, form_input: FormInput
) -> list[Field]:
    inputs: list[Field] = []
    for name in form_fields(mode):
        faults = list(form_input.faults.get(name, []))
        kind, inputmode, autocomplete = _INPUT[name]
        hint, prefix, instructions, caution = None, None, None, None
        sent = form_input.code_sent if name == "otp" else None
        if name == "phone_number":
            hint = page.text("field.phone_hint_otp" if mode.requires_otp else "field.phone_hint")
            prefix = mode.dial_code
        elif name == "email":
            hint = page.text("field.email_hint")
        elif name == "otp":
            instructions, caution = _otp_help(page, mode, total_amount, currency)
        inputs.append(
            Field(
                id=f"{name.replace('_', '-')}-{key}",
                name=name,
                label=_label(page, mode, name),
                type=kind,
                inputmode=inputmode,
                autocomplete=autocomplete,
                maxlength=LENGTHS[name],
                value=form_input.values.get(name, ""),
                faults=faults,
                focus=bool(faults or sent) and not any(earlier.focus for earlier in inputs),
                hint=hint,
                prefix=prefix,
                instructions=instructions,
                caution=caution,
                requestable=name == "otp" and mode.sends_code,
                sent=sent,
            )
        )
    return inputs


def _label(page: PageRequest, mode: PaymentMode, name: str) -> str:
    return page.text("field.phone", mode=mode.name) if name == "phone_number" else page.text(f"field.{name}")


def _otp_help(
    page: PageRequest, mode: PaymentMode, total_amount: Hundredths, currency: Currency
) -> tuple[str, str | None]:
    """How to get the code, with the total in place of `{total}`, and a warning if the catalogue says that it is
    unverified."""
    hint = (mode.otp_hint or {}).get(page.language) or (mode.otp_hint or {}).get("fr")
    if not hint:
        return page.text("field.otp_unknown", mode=mode.name), None
    total = money.plain(money.round_to_currency(total_amount, currency))
    caution = None if mode.otp_hint_verified else page.text("field.otp_caution")
    return hint.replace("{total}", total), caution


class Checked(Record, frozen=True):
    """`form_values` are shown again in the form, `clean` is for the payment; `faults` is empty if there are none."""

    form_values: dict[str, str]
    clean: dict[str, str]
    faults: dict[str, list[str]]


def check(page: PageRequest, mode: PaymentMode, form: Mapping[str, str]) -> Checked:
    """Checks every field that this mode needs, and reports all faults at once."""
    form_values = {name: form.get(name, "").strip() for name in form_fields(mode)}
    clean: dict[str, str] = {}
    faults: dict[str, list[str]] = {}
    for name, value in form_values.items():
        cleaned = _clean(mode, name, value)
        if cleaned is not None:
            clean[name] = cleaned
            continue
        kind = "wrong" if value else "missing"
        faults[name] = [page.text(f"fault.{name}.{kind}", example=formatting.example_number(mode.dial_code))]
    return Checked(form_values, clean, faults)


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
