"""A page of the console as a browser reads it: its status, its text, its forms."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Form:
    """A form of a page: its address, and its fields with the values that the page gave them."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)


class _Forms(HTMLParser):
    """But for the field of the frame that searches payments from every page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Form] = []
        self._of_frame = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "form":
            self._of_frame = values.get("class") == "look"
            if not self._of_frame:
                self.found.append(Form(values.get("action") or ""))
        elif (
            self.found
            and not self._of_frame
            and (tag == "input" and values.get("type") != "radio")
            and (name := values.get("name"))
        ):
            self.found[-1].fields[name] = values.get("value") or ""


@dataclass
class Page:
    status: int
    path: str
    text: str
    headers: Mapping[str, str]
    content: bytes = b""

    def forms(self) -> list[Form]:
        parser = _Forms()
        parser.feed(self.text)
        return parser.found

    def form(self, *with_fields: str) -> Form:
        """The one form that has these fields."""
        [found] = [form for form in self.forms() if set(with_fields) <= form.fields.keys()]
        return found
