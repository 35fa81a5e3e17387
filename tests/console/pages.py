"""A page of the console as a browser reads it: its status, its text, its forms."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.tags import tags


@dataclass
class Form:
    """A form of a page: its address, and its fields with the values that the page gave them."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)


@dataclass
class Page:
    status: int
    path: str
    text: str
    headers: Mapping[str, str]
    content: bytes = b""

    def forms(self) -> list[Form]:
        """But for the one of the frame, which searches payments from every page."""
        found: list[Form] = []
        of_frame = False
        for tag, values in tags(self.text, "form", "input"):
            if tag == "form":
                of_frame = values.get("class") == "look"
                if not of_frame:
                    found.append(Form(values.get("action", "")))
            elif found and not of_frame and values.get("type") != "radio" and (name := values.get("name")):
                found[-1].fields[name] = values.get("value", "")
        return found

    def form(self, *with_fields: str) -> Form:
        """The one form that has these fields."""
        [found] = [form for form in self.forms() if set(with_fields) <= form.fields.keys()]
        return found
