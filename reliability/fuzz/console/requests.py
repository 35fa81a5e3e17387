"""What requests to the console are made of, and how they go over the wire."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final
from urllib.parse import quote_plus, urlencode

from guichet.console.sections import MerchantPage
from guichet.domain.roles import may_as_merchant, may_as_staff
from reliability.fuzz.console.cast import Cast, Person
from reliability.fuzz.console.pages import Address, Book, PageForm
from reliability.fuzz.console.stock import Stock
from reliability.fuzz.console.values import odd_encoded, odd_name
from reliability.fuzz.failure import saved_probe, saved_rule
from reliability.fuzz.recorded import FORM, Probe, wire

#: How the names of the kinds begin.
CONSOLE: Final = "console: "

#: Names of parameters of the pages' addresses.
PARAMETERS: Final = (
    *("page", "after", "before", "order", "q", "status", "from", "to", "days", "currency", "month", "kind", "event"),
    *("external_id", "by", "act", "lang", "next", "done", "warning", "fault", "started", "merchant", "mode", "again"),
    *("reference", "actor", "action", "subject", "key", "method", "target"),
)


#: Done, sent on, or refused in words.
ANSWERED: Final = (200, 303, 403, 404, 409, 410, 413, 422, 429)


@dataclass(frozen=True, slots=True)
class PageProbe(Probe):
    """A request to the console. `allowed`: the statuses that are right. `person`: whose open session it is sent in, if
    that must stay open. `hides`: nothing of the foreign merchant may be in the answer. `to_sign_in`: nobody
    sends it."""

    allowed: tuple[int, ...] = ()
    person: str = ""
    hides: bool = True
    to_sign_in: bool = False


@dataclass(frozen=True)
class Scene:
    """Everything that requests are made of."""

    own: Stock
    foreign: Stock
    cast: Cast
    book: Book
    public_url: str
    names: Mapping[str, str] = field(default_factory=dict)

    def team(self) -> list[Person]:
        return [each for each in self.cast.people.values() if not each.is_staff]

    def staff(self) -> list[Person]:
        return [each for each in self.cast.people.values() if each.is_staff]


def saved_page_probe(file: Path, names: Mapping[str, str]) -> PageProbe:
    """The request of a failure, with the names of this run."""
    saved, rule = saved_probe(file, names), saved_rule(file)
    rule["allowed"] = tuple(rule["allowed"])
    return PageProbe(saved.kind, saved.raw, saved.method, saved.target, **rule)


def client(random: Random) -> tuple[str, str]:
    """One of many addresses: sign-ins are limited for each of them, whatever the settings."""
    return ("X-Forwarded-For", f"10.{random.randrange(256)}.{random.randrange(256)}.{random.randrange(256)}")


def same_site(random: Random, scene: Scene) -> tuple[str, str]:
    """As browsers say it, new and old."""
    return random.choice((("Sec-Fetch-Site", "same-origin"), ("Origin", scene.public_url)))


def asking(
    kind: str,
    method: str,
    target: str,
    headers: Sequence[tuple[str, str]],
    body: bytes = b"",
    *,
    allowed: tuple[int, ...],
    person: Person | None = None,
    to_sign_in: bool = False,
) -> PageProbe:
    """`person`: whose session the headers hold."""
    made = wire(CONSOLE + kind, method, sendable(target), headers, body)
    return PageProbe(
        made.kind,
        made.raw,
        method,
        made.target,
        allowed=(*allowed, *((414,) if len(made.target) > 8000 else ())),
        person=person.name if person else "",
        hides=person is None or not person.is_staff,
        to_sign_in=to_sign_in,
    )


def sendable(target: str) -> str:
    """Without what would end the request line: the request stays well framed."""
    return "".join(each for each in target if each.isprintable() and each not in ' \\{}<>"^`|#')[:12_000]


def may(person: Person, address: Address) -> bool:
    page = address.page
    if isinstance(page, MerchantPage):
        assert address.env is not None
        return not person.is_staff and may_as_merchant(person.role, page.right, address.env)  # type: ignore[arg-type]
    return person.is_staff and may_as_staff(person.role, page.right)  # type: ignore[arg-type]


def method_of(address: Address, random: Random) -> str:
    """One that the page takes."""
    methods = [name for name, handler in (("GET", address.page.show), ("POST", address.page.change)) if handler]
    return random.choice(methods)


def posted_forms(scene: Scene, *, staff: bool) -> list[PageForm]:
    """Those that are no search by an address."""
    return [each for each in (scene.book.staff_forms if staff else scene.book.forms) if not each.is_search]


def query(random: Random, scene: Scene) -> str:
    pairs = []
    for _ in range(random.randint(1, 4)):
        name = random.choice(PARAMETERS) if random.random() < 0.9 else odd_name(random)
        value = odd_encoded(random)
        if name in ("after", "before") and random.random() < 0.3:
            value = random.choice(scene.foreign.by_env["live"]["payments/reference"])
        pairs.append(f"{name}={value}")
    return random.choice("&&&;").join(pairs)


def address_of(action: str, scene: Scene) -> Address | None:
    """The page of the tables that a form is sent to; None for a person's own pages."""
    path = action.partition("?")[0]
    return next((each for each in (*scene.book.own, *scene.book.staff) if each.path == path), None)


def posting(
    kind: str,
    form: PageForm,
    scene: Scene,
    random: Random,
    headers: Sequence[tuple[str, str]],
    token: str,
    allowed: tuple[int, ...],
    person: Person | None,
) -> PageProbe:
    """The form as a browser sends it, with one of its buttons."""
    pairs = [("csrf", token), *filled(form, random)]
    if form.is_file:
        kind_of, body = multipart(pairs, "a.pdf", b"%PDF-1.7 x")
        return asking(kind, "POST", form.action, [*headers, kind_of], body, allowed=allowed, person=person)
    body = urlencode(pairs, errors="replace").encode()
    return asking(kind, "POST", form.action, [*headers, FORM], body, allowed=allowed, person=person)


def filled(form: PageForm, random: Random) -> list[tuple[str, str]]:
    chosen = {name: random.choice(values) for name, values in form.choices if values}
    return list({**dict(form.fields), **chosen}.items())


def encoded_pair(name: str, value: str) -> str:
    return f"{quote_plus(name)}={quote_plus(value, errors='replace')}"


def multipart(pairs: Sequence[tuple[str, str]], name: str, content: bytes) -> tuple[tuple[str, str], bytes]:
    """The header and the body of a form with a file."""
    parts = [
        f'--zq7\r\nContent-Disposition: form-data; name="{each}"\r\n\r\n{value}\r\n'.encode("utf-8", "replace")
        for each, value in pairs
    ]
    head = f'--zq7\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
    parts.append(
        head.encode("utf-8", "replace") + b"Content-Type: application/pdf\r\n\r\n" + content + b"\r\n--zq7--\r\n"
    )
    return ("Content-Type", "multipart/form-data; boundary=zq7"), b"".join(parts)
