"""Reads the catalogue of payment modes from its TOML file (docs/contract.md, "Operators", "Resources").

The file is typed by people, so it is checked strictly: the first fault ends the reading with one sentence that names
the file, the entry and the key. Fees are decimal strings and become integers here, once (docs/architecture.md,
"Units").
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final, cast

from guichet.domain import money
from guichet.domain.catalogue import MOBILE_MONEY, MODE_TYPES, RATE_PLACES, Catalogue, PaymentMode, PaymentModeType
from guichet.domain.ids import PaymentModeId
from guichet.domain.money import Hundredths
from guichet.settings import SettingsError

_LANGUAGES: Final = ("fr", "en")
_FEE: Final = re.compile(r"[0-9]{1,9}(?:\.([0-9]+))?")
_REQUIRED: Final = ("id", "operator", "name", "type", "fee_percent", "fee_fixed")
_OPTIONAL: Final = (
    "country",
    "country_code",
    "dial_code",
    "requires_otp",
    "requires_return_url",
    "active",
    "otp_hint",
    "otp_hint_verified",
    "sends_code",
    "logo",
)
_SHAPES: Final = {
    "operator": (re.compile(r"[A-Za-z0-9_]{1,32}"), "1 to 32 letters, digits or underscores"),
    "name": (re.compile(r".{1,100}"), "1 to 100 characters on one line"),
    "country": (re.compile(r".{1,60}"), "1 to 60 characters on one line"),
    "country_code": (re.compile(r"[A-Z]{2}"), "a two-letter ISO code in capitals, such as BJ"),
    "dial_code": (re.compile(r"[0-9]{1,4}"), "1 to 4 digits without a plus sign"),
    "logo": (re.compile(r"https://[^\s\"'<>]+"), "an https address"),
}


class CatalogueFileError(SettingsError):
    """The catalogue file is unusable; one sentence for the person who edited it."""


class _Entry:
    """One `[[modes]]` table; every reader refuses in a sentence that names this entry and the key."""

    def __init__(self, file: str, position: int, raw: object) -> None:
        self.label = f"{file}: mode {position}"
        if not isinstance(raw, dict):
            raise CatalogueFileError(f"{self.label} must be a table of keys and values.")
        self.raw: Mapping[str, Any] = raw
        operator = raw.get("operator")
        if isinstance(operator, str):
            self.label += f" ({operator})"
        for key in raw:
            if key not in _REQUIRED and key not in _OPTIONAL:
                raise self.fault(key, "is unknown")
        for key in _REQUIRED:
            if key not in raw:
                raise self.fault(key, "is missing")

    def fault(self, key: str, sentence: str) -> CatalogueFileError:
        return CatalogueFileError(f"{self.label}: {key} {sentence}.")

    def text(self, key: str) -> str | None:
        value = self.raw.get(key)
        if value is None:
            return None
        pattern, description = _SHAPES[key]
        if not isinstance(value, str) or not pattern.fullmatch(value) or value != value.strip():
            raise self.fault(key, f"must be {description}")
        return value

    def required_text(self, key: str) -> str:
        return self.text(key) or ""  # presence is checked at construction, and no shape admits an empty text

    def flag(self, key: str, default: bool) -> bool:
        value = self.raw.get(key, default)
        if not isinstance(value, bool):
            raise self.fault(key, "must be true or false")
        return value

    def number(self, key: str) -> int:
        value = self.raw[key]
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 2**31 - 1:
            raise self.fault(key, "must be a whole number from 1")
        return value

    def kind(self) -> PaymentModeType:
        value = self.raw["type"]
        if value not in MODE_TYPES:
            raise self.fault("type", f"must be one of {', '.join(MODE_TYPES)}")
        return cast(PaymentModeType, value)  # one of them, as was just checked

    def fee(self, key: str, places: int) -> int:
        """A decimal string as an integer of `10**-places`; finer ones are refused, not rounded: they are a typo."""
        value = self.raw[key]
        match = _FEE.fullmatch(value) if isinstance(value, str) else None
        if not match or len(match[1] or "") > places or (parsed := money.parse_decimal(value, places)) is None:
            raise self.fault(
                key, f'must be a number of 0 or more in quotes with at most {places} decimals, such as "1.75"'
            )
        return parsed

    def hint(self) -> Mapping[str, str] | None:
        value = self.raw.get("otp_hint")
        if value is None:
            return None
        complete = isinstance(value, dict) and sorted(value) == sorted(_LANGUAGES)
        if not complete or not all(isinstance(text, str) and text.strip() for text in value.values()):
            raise self.fault("otp_hint", 'must have exactly the texts fr and en, such as { fr = "…", en = "…" }')
        return {language: value[language] for language in _LANGUAGES}

    def mode(self) -> PaymentMode:
        mode = PaymentMode(
            id=PaymentModeId(self.number("id")),
            operator=self.required_text("operator"),
            name=self.required_text("name"),
            type=self.kind(),
            country=self.text("country"),
            country_code=self.text("country_code"),
            dial_code=self.text("dial_code"),
            fee_percent=self.fee("fee_percent", RATE_PLACES),
            fee_fixed=Hundredths(self.fee("fee_fixed", 2)),
            requires_otp=self.flag("requires_otp", default=False),
            requires_return_url=self.flag("requires_return_url", default=False),
            logo=self.text("logo"),
            active=self.flag("active", default=True),
            otp_hint=self.hint(),
            otp_hint_verified=self.flag("otp_hint_verified", default=False),
            sends_code=self.flag("sends_code", default=False),
        )
        if mode.fee_percent > 100 * 10**RATE_PLACES:
            raise self.fault("fee_percent", "must not exceed 100")
        if mode.otp_hint_verified and mode.otp_hint is None:
            raise self.fault("otp_hint_verified", "is true, but there is no otp_hint")
        if mode.sends_code and not (mode.requires_otp and mode.type == MOBILE_MONEY):
            raise self.fault("sends_code", "is true, but this is no mobile_money mode with requires_otp")
        return mode


def load_catalogue(path: Path | None) -> Catalogue:
    """The catalogue of `path`, or the packaged one when None; raises CatalogueFileError on the first fault."""
    return _parse(str(path), path) if path else _packaged_catalogue()


@cache
def _packaged_catalogue() -> Catalogue:
    return _parse("catalogue.toml", resources.files("guichet").joinpath("data/catalogue.toml"))


def _parse(file: str, source: Path | Traversable) -> Catalogue:
    try:
        document = tomllib.loads(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise CatalogueFileError(f"{file} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CatalogueFileError(f"{file} is not a TOML file: {error}.") from None
    return Catalogue(_modes(file, document))


def _modes(file: str, document: Mapping[str, Any]) -> list[PaymentMode]:
    for key in document:
        if key != "modes":
            raise CatalogueFileError(f"{file}: {key} is unknown; the file holds [[modes]] entries only.")
    entries = document.get("modes")
    if not isinstance(entries, list) or not entries:
        raise CatalogueFileError(f"{file}: modes must hold at least one [[modes]] entry.")
    modes: list[PaymentMode] = []
    seen: dict[tuple[str, str | int], int] = {}
    for position, raw in enumerate(entries, start=1):
        entry = _Entry(file, position, raw)
        mode = entry.mode()
        # Codes are case-insensitive for merchants, so "visa" beside "VISA" would be the same code twice.
        keys: tuple[tuple[str, str | int], ...] = (("id", mode.id), ("operator", mode.operator.casefold()))
        for key, value in keys:
            first = seen.setdefault((key, value), position)
            if first != position:
                raise entry.fault(key, f"is already used by mode {first}")
        modes.append(mode)
    return modes
