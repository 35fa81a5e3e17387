"""A page as lines of text, and placeholders for what is made by chance."""

import re
from html.parser import HTMLParser
from typing import Final
from urllib.parse import unquote

_SAID: Final = ("title", "aria-label", "placeholder", "alt", "data-done", "datetime")
_SILENT: Final = ("script", "style", "svg")
_CHANCE: Final = (
    ("duration", re.compile(r"\b\d+(?= ms\b)")),
    # Numbered by a sequence of the database, which leaves gaps.
    ("incident", re.compile(r"(?<=\[input incident=)\d+")),
    ("uuid", re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")),
    ("seed", re.compile(r"\b(?:[A-Z2-7]{4} ){5,}[A-Z2-7]{1,4}\b")),
    ("token", re.compile(r"(?<=\[input token=)[^\]\s]+|(?<=/pay/)[\w-]{16,}/[\w-]{16,}")),
    ("token", re.compile(r"(?<=/checkout/)[A-Za-z0-9]{16,}|\bcs_(?:live|test)_\w+")),
    ("seed", re.compile(r"(?<=secret=)[A-Z2-7]{16,}")),
    ("port", re.compile(r"(?<=127\.0\.0\.1:)\d{4,5}|(?<=localhost:)\d{4,5}")),
    ("preview", re.compile(r"(?<=…)[A-Za-z0-9_-]{4,}|\b[A-Za-z0-9_]{4,}(?=…)")),
    ("short", re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b")),
    ("secret", re.compile(r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Z])(?=[\w-]*[a-z])[A-Za-z0-9_-]{16,}(?![\w-])")),
)


class Placeholders:
    """The same text is the same placeholder throughout one file."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, int]] = {}

    def __call__(self, text: str) -> str:
        for name, shape in _CHANCE:
            known = self._known.setdefault(name, {})
            if name == "duration":
                text = shape.sub("{duration}", text)
                continue
            text = shape.sub(lambda found: f"{{{name}-{known.setdefault(found[0], len(known) + 1)}}}", text)  # noqa: B023
        return text


class _Lines(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.links: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = {name: value or "" for name, value in attrs}
        if tag in _SILENT:
            self._silent += 1
        if tag == "a" and "href" in of:
            self.links.append(of["href"])
            self.lines.append(f"[a {unquote(of['href'])}]")
        elif tag == "form":
            self.lines.append(f"[form {of.get('method', 'get')} {of.get('action', '')}]")
        elif tag in ("input", "select", "textarea", "button", "option"):
            name = of.get("name", "") if tag != "option" else "*" if "selected" in of else ""
            kept = " ".join(each for each in ("checked", "required", "hidden", "disabled") if each in of)
            of |= {"value": "{csrf}"} if name == "csrf" else {}
            self.lines.append(f"[{tag} {name}={of.get('value', '')} {of.get('type', '')} {kept}".rstrip() + "]")
        elif tag in ("h1", "h2", "h3", "html"):
            self.lines.append(f"<{tag}{' ' + of['lang'] if 'lang' in of else ''}>")
        self.lines += [f"[{name}: {of[name]}]" for name in _SAID if of.get(name)]

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent -= 1

    def handle_data(self, data: str) -> None:
        if not self._silent and (text := re.sub(r"[ \t\r\n]+", " ", data).strip(" ")):
            self.lines.append(text)


def read(html: str) -> tuple[list[str], list[str]]:
    """The lines of a page, and where its links lead."""
    parser = _Lines()
    parser.feed(html)
    return parser.lines, parser.links
