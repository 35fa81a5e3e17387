"""The pages of the console as a browser of the trial knows them: their addresses, and the forms that they show."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from typing import Final

from guichet.console.page_tables import MERCHANT_PAGES, STAFF_PAGES
from guichet.console.sections import MerchantPage, StaffPage
from guichet.domain.merchants import ENVS, Environment
from reliability.fuzz.console.cast import Person
from reliability.fuzz.console.stock import Ids, Stock
from reliability.fuzz.recorded import wire
from reliability.fuzz.sockets import BrokenAnswer, Connection

_PARAMETER: Final = re.compile(r"\{(\w+)(?::\w+)?\}")
#: Pages that one person has, at /console.
OWN_PAGES: Final = ("", "/security", "/security/password", "/factor", "/factor/change", "/factor/setup")


@dataclass(frozen=True, slots=True)
class PageForm:
    """A form of a page. `fields`: names and values as the page gave them, without the token; `choices`: the values of
    selects, radio buttons and buttons, by name."""

    action: str
    fields: tuple[tuple[str, str], ...] = ()
    choices: tuple[tuple[str, tuple[str, ...]], ...] = ()
    is_file: bool = False
    is_search: bool = False


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a page of the tables. `key`: its path in the tables; `env`: None in the back office."""

    path: str
    page: MerchantPage | StaffPage
    env: Environment | None


@dataclass(frozen=True)
class Book:
    """What is known of the pages: the addresses of the own merchant and of the foreign one, those of the back office,
    forms of the own merchant and of the back office, and names of parameters that addresses have."""

    own: list[Address]
    foreign: list[Address]
    crossed: list[Address]
    staff: list[Address]
    forms: list[PageForm] = field(default_factory=list)
    staff_forms: list[PageForm] = field(default_factory=list)


def addresses(page: MerchantPage | StaffPage, base: str, ids: Ids, env: Environment | None) -> Iterator[Address]:
    """The page for each of the ids that it names. Raises KeyError for a parameter that `stock.py` knows nothing of."""
    yield from (Address(base + path, page, env) for path in _filled(page.path, ids))


def _filled(path: str, ids: Ids) -> list[str]:
    paths, before = [""], ""
    for segment in path.split("/")[1:]:
        parameter = _PARAMETER.fullmatch(segment)
        values = ids[f"{before}/{parameter[1]}"] if parameter else [segment]
        paths = [f"{each}/{value}" for each in paths for value in values]
        before = parameter[1] if parameter else segment
    return paths


def book(own: Stock, foreign: Stock) -> Book:
    """`crossed`: addresses of the own merchant that name something of the foreign one, or of the other environment."""
    made = Book([], [], [], [])
    for page in MERCHANT_PAGES:
        for env, other in (ENVS, ENVS[::-1]):
            made.own.extend(addresses(page, f"{own.base}/{env}", own.by_env[env], env))
            made.foreign.extend(addresses(page, f"{foreign.base}/{env}", foreign.by_env[env], env))
            if "{" in page.path:
                for ids in (foreign.by_env[env], own.by_env[other]):
                    made.crossed.extend(addresses(page, f"{own.base}/{env}", ids, env))
    for each in STAFF_PAGES:
        made.staff.extend(addresses(each, "/admin", own.of_staff, None))
    return made


class _Forms(HTMLParser):
    """Every form of a page, as it would be sent untouched."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._open = False
        self._fields: dict[str, str] = {}
        self._choices: dict[str, list[str]] = {}
        self._select: str | None = None
        self._form = PageForm(path)
        self.found: list[PageForm] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open, self._fields, self._choices = True, {}, {}
            search = values.get("method", "get").lower() == "get"
            file = values.get("enctype") == "multipart/form-data"
            self._form = PageForm(values.get("action") or self._path, is_file=file, is_search=search)
        elif self._open:
            self._field(tag, values)

    def _field(self, tag: str, values: dict[str, str]) -> None:
        name, value = values.get("name"), values.get("value", "")
        if tag == "option" and self._select is not None:
            self._choices.setdefault(self._select, []).append(value)
            if "selected" in values or self._select not in self._fields:
                self._fields[self._select] = value
        if not name or name == "csrf" or values.get("type") == "file":
            return
        if tag == "select":
            self._select = name
        elif tag == "button" or values.get("type") in ("radio", "checkbox"):
            self._choices.setdefault(name, []).append(value or "on")
        elif tag in ("input", "textarea"):
            self._fields[name] = value

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._select = None
        elif tag == "form" and self._open:
            self._open = False
            choices = tuple((name, tuple(values)) for name, values in self._choices.items())
            self.found.append(replace(self._form, fields=tuple(self._fields.items()), choices=choices))


async def read_forms(port: int, visitors: Sequence[tuple[Person, Sequence[str]]]) -> list[PageForm]:
    """The forms of these pages, each once. A form that only ends the session is left out. Raises BrokenAnswer."""
    connection, found = Connection(port), dict[PageForm, None]()
    for person, paths in visitors:
        for path in paths:
            answer = await connection.ask(wire("", "GET", path, [person.header]).raw, "GET")
            if answer.status not in (200, 303, 404, 409):
                raise BrokenAnswer(f"{person.name} does not see {path}: {answer.status}")
            if (answer.header("content-type") or "").startswith("text/html"):
                parser = _Forms(path)
                parser.feed(answer.body.decode())
                found |= dict.fromkeys(parser.found)
    await connection.close()
    return [each for each in found if each.action != "/console/sign-out"]
