"""What the recordings share: placeholders for what is made by chance, and the files' form."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent
_CHANCE: Final = (
    ("page", re.compile(r'(?<={simulator_url}/)[^"\s]+')),
    ("uuid", re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b")),
    ("secret", re.compile(r"\bwhsec_[A-Za-z0-9]{32,}\b")),
    # Numbered by a sequence of the database, which may leave gaps.
    ("identifier", re.compile(r'(?<="identifier":")[0-9]{10}(?=")')),
    ("token", re.compile(r"(?<=/checkout/)[A-Za-z0-9]{32}\b|(?<=/pay/)[A-Za-z0-9_/-]+")),
    ("request-id", re.compile(r"\b[0-9a-f]{32}\b")),
    ("hmac", re.compile(r"(?<=v1=)[0-9a-f]{64}\b")),
)


class Placeholders:
    """Replaces what is made by chance. The same text is the same placeholder wherever it appears: `{uuid-1}`."""

    def __init__(self, **addresses: str) -> None:
        """`addresses`: name → the address that `{name}` stands for."""
        self._addresses = addresses
        self._numbers: dict[str, dict[str, int]] = {}

    def __call__(self, text: str) -> str:
        for name, address in self._addresses.items():
            text = text.replace(address, f"{{{name}}}")
        for name, shape in _CHANCE:
            text = shape.sub(self._numbered(name), text)
        return text

    def _numbered(self, name: str) -> Callable[[re.Match[str]], str]:
        known = self._numbers.setdefault(name, {})
        return lambda found: f"{{{name}-{known.setdefault(found[0], len(known) + 1)}}}"


def chosen(headers: Mapping[str, str], names: tuple[str, ...], placeholders: Placeholders) -> dict[str, str]:
    """The headers of these names that are there, under lower-case names in this order."""
    found = {name.lower(): value for name, value in headers.items()}
    return {name: placeholders(found[name]) for name in names if name in found}


def as_json(recorded: Any, *, sort_keys: bool = False) -> str:
    return json.dumps(recorded, ensure_ascii=False, indent=1, sort_keys=sort_keys) + "\n"


def frozen(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
