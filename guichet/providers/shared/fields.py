"""What all providers share in requests, responses and callbacks: JSON, amounts, numbers, references, texts, addresses,
status words.

JSON is decoded here and nowhere else: a number with a fraction becomes a Decimal, so that no amount becomes a float.
Text is cleaned here too, before anybody sees it: no database refuses it, no terminal obeys it
(docs/decisions.md, "Strangers' writes").
"""

import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from enum import Enum, auto
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from guichet.domain.money import Hundredths, to_hundredths
from guichet.providers.base import Callback, CallbackReference, Charge

_DECODER: Final = msgspec.json.Decoder(float_hook=Decimal)
#: A body that is nested too deeply, or has a number beyond every Decimal, is as unreadable as one that is not JSON.
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ArithmeticError)
#: More digits than any real amount has; a provider may send anything. In hundredths they still fit in 64 bits.
_MAX_DIGITS: Final = 15
#: Bytes in UTF-8 of a reference or an address. PostgreSQL can index no text of more than 2 700.
_MAX_TEXT: Final = 2048
#: What no text may hold: control characters other than tabs and ends of lines, and halves of surrogate pairs.
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
#: What stands in its place: nothing of ours contains it, so that "a\0b" is never taken for "ab".
REPLACEMENT: Final = "\ufffd"
#: A cheap test that most bodies fail: whether `_JSON_PART` can find anything to replace.
_SUSPECT: Final = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]|\\(?:[bf]|u00[0189]|u007[fF]|u[dD][89a-fA-F])"
)
#: The escapes of JSON one after the other, whole surrogate pairs first, and characters that are not escaped.
_JSON_PART: Final = re.compile(
    rb"(?P<kept>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u(?P<code>[0-9a-fA-F]{4})|\\(?P<letter>.)"
    rb"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]",
    re.DOTALL,
)
_SEPARATORS: Final = re.compile(r"[ .()-]+")
#: With their country code, the numbers of our operators have eleven to thirteen digits.
_FULL_NUMBER: Final = re.compile(r"[1-9][0-9]{10,14}")
#: The shortest national numbers; Bénin put two digits in front of its own in 2024.
_LEAST_DIGITS: Final = 8
_NOT_PLAIN: Final = re.compile(r"[^A-Za-z0-9 ]+")


class ProviderStatus(Enum):
    """What a provider's own status word means. A word that is in no table means nothing: the result is Unknown."""

    PENDING = auto()
    SUCCEEDED = auto()
    FAILED = auto()


def status_words(*, pending: str = "", succeeded: str = "", failed: str) -> dict[str, ProviderStatus]:
    """The meaning of each word; words are separated by spaces."""
    words = {ProviderStatus.PENDING: pending, ProviderStatus.SUCCEEDED: succeeded, ProviderStatus.FAILED: failed}
    return {word: meaning for meaning, listed in words.items() for word in listed.split()}


def decode_json(body: bytes) -> Any:
    """The value in `body`, its texts clean as by `clean_text`; None when it is not JSON."""
    if _SUSPECT.search(body):
        body = _JSON_PART.sub(_cleaned_part, body)
    try:
        return _DECODER.decode(body)
    except _UNREADABLE:
        return None


def _cleaned_part(part: re.Match[bytes]) -> bytes:
    code, letter = part["code"], part["letter"]
    bad = _FORBIDDEN.match(chr(int(code, 16))) if code else letter in (None, b"b", b"f")
    return REPLACEMENT.encode() if bad and not part["kept"] else part[0]


def clean_text(text: str) -> str:
    """`text` with REPLACEMENT in place of each character that no database, log or terminal should be given."""
    return _FORBIDDEN.sub(REPLACEMENT, text)


def decode_json_object(body: bytes) -> dict[str, Any] | None:
    """The object in `body`; None when it is anything else."""
    value = decode_json(body)
    return value if isinstance(value, dict) else None


def value_at(body: object, *names: str) -> Any:
    """What stands under these names, one inside the other; None where one is missing or stands in no object."""
    for name in names:
        body = body.get(name) if isinstance(body, dict) else None
    return body


def units(amount: Hundredths) -> int:
    """Main units of a currency without decimals. Amounts are rounded to them before they come here (D27)."""
    return amount // 100


def hundredths(value: object) -> Hundredths | None:
    """An amount in main units, as a provider states it (int, Decimal or decimal text), in hundredths.

    None when it is something else, absurdly large, or finer than a hundredth: it then equals no amount of ours.
    """
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        return None
    try:
        amount = Decimal(value)
    except ArithmeticError:
        return None
    if amount.is_finite() and amount.adjusted() > _MAX_DIGITS:
        return None
    return to_hundredths(amount)


def text_or_none(value: object) -> str | None:
    """A reference, an address or a currency of a response, as text; None when it is absent, empty, longer than any real
    one or something else."""
    if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
        return None
    text = str(value)
    return text if len(text.encode()) <= _MAX_TEXT else None


def parse_status_word(meanings: Mapping[str, ProviderStatus], word: object) -> ProviderStatus | None:
    """The meaning of a status word in upper or lower case; None when the table does not have it."""
    return meanings.get(str(word).upper())


def full_number(value: object, country_code: str = "") -> str | None:
    """A phone number as a provider states it, as digits with the country code; None when it is masked or incomplete.

    `country_code`: of the country, for a provider that writes national numbers.
    """
    text = _SEPARATORS.sub("", text_or_none(value) or "").removeprefix("+").removeprefix("00")
    if not text.startswith(country_code):
        text = country_code + text
    return text if _FULL_NUMBER.fullmatch(text) else None


def payer_not_echoed(stated_number: object, charge: Charge) -> str | None:
    """The number that paid, stated by a provider that repeats what we sent; None when it states none.

    On the provider's page anybody may have paid: our own number, however it is written, proves nothing there. Only
    another one does.
    """
    number = full_number(stated_number)
    if number is None or charge.payment.redirect_url is None or charge.payment.phone_number is None:
        return number
    return None if number[-_LEAST_DIGITS:] == charge.payment.phone_number[-_LEAST_DIGITS:] else number


def plain_text(text: str, max_length: int) -> str:
    """Letters, digits and spaces only, which every provider accepts; "Paiement" when nothing is left.

    Source: docs/providers/README.md, "Rules common to every family".
    """
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return " ".join(_NOT_PLAIN.sub(" ", ascii_text).split())[:max_length].strip() or "Paiement"


def return_url(charge: Charge, configured: str | None, max_length: int = 2048) -> str | None:
    """Where the provider's page sends the customer back; None when no address is short enough.

    The first of: the merchant's page, the page configured for the account, the root of our own public address.
    """
    public = urlsplit(charge.notify_url or "")
    pages = (charge.return_url, configured, f"{public.scheme}://{public.netloc}/" if public.netloc else None)
    return next((page for page in pages if page and len(page) <= max_length), None)


def callback_reference(reference: object, provider_reference: object) -> CallbackReference | None:
    """What a callback names: our reference, the provider's, or both; None when it names neither."""
    our_id, provider_id = text_or_none(reference), text_or_none(provider_reference)
    return CallbackReference(our_id, provider_id) if our_id or provider_id else None


def header(callback: Callback, name: str) -> str:
    """The value of a callback's header, whatever the case of its name; empty when it is absent."""
    lower_name = name.lower()
    return next((value for key, value in callback.headers.items() if key.lower() == lower_name), "")
