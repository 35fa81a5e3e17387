"""Reads a posted form, within limits, and checks its fields; faults are sentences in the customer's language."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from unicodedata import category
from urllib.parse import parse_qsl

from email_validator import EmailNotValidError, validate_email
from starlette.requests import Request

from guichet.checkout import formatting
from guichet.checkout.fields import LENGTHS, form_fields
from guichet.checkout.page_request import PageRequest
from guichet.domain.catalogue import PaymentMode
from guichet.domain.errors import InvalidRequest

_MAX_BODY: Final = 16 * 1024
_MAX_FIELDS: Final = 20
#: The values of `Sec-Fetch-Site` with which a form is accepted: sent by one of our own pages, or by no page.
_OWN: Final = ("same-origin", "none")


async def read(request: Request) -> dict[str, str]:
    """The fields of a posted form, the first of each name. Raises InvalidRequest if it cannot be one of our forms."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY:
            raise InvalidRequest
    try:
        pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise InvalidRequest from None
    return dict(reversed(pairs))


def is_from_elsewhere(request: Request, public_url: str) -> bool:
    """Whether a page of another site sent this form. If an old browser does not say, only the form's token is
    checked."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site not in _OWN
    origin = request.headers.get("origin")
    if origin in (None, "null"):
        return False
    own = (public_url, f"{request.url.scheme}://{request.headers.get('host', '')}")
    return not any(address == origin or address.startswith(f"{origin}/") for address in own)


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


def _email(value: str) -> str | None:
    try:
        return validate_email(value, check_deliverability=False).normalized
    except EmailNotValidError:
        return None


def _otp(value: str) -> str | None:
    return value.replace(" ", "") or None


_RULES: Final[Mapping[str, Callable[[str], str | None]]] = {"email": _email, "otp": _otp}
