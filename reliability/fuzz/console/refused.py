"""Hostile requests to the console that may change nothing, each a function of the seed and its number.

`refused(seed, number, scene)` is the entrance. What may act, on rows of its own merchant, is in `acts.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final
from urllib.parse import urlencode

from reliability.fuzz.console.cast import Person
from reliability.fuzz.console.forged import cookies, forged, stale, without_right
from reliability.fuzz.console.pages import OWN_PAGES, PageForm
from reliability.fuzz.console.requests import (
    CONSOLE,
    PageProbe,
    Scene,
    asking,
    client,
    filled,
    may,
    method_of,
    posted_forms,
    query,
    same_site,
)
from reliability.fuzz.console.values import odd_encoded, odd_text
from reliability.fuzz.mutations import damaged
from reliability.fuzz.recorded import FORM, wire

_PAGE: Final = (200, 303, 404, 409, 422)

_METHODS: Final = ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "HEAD", "get", "POST")

#: Where nobody needs to be signed in, with the fields of the forms.
_OUTSIDE: Final[Mapping[str, Sequence[str]]] = {
    "/console/sign-in": ("email", "password", "next"),
    "/console/password": ("email",),
    "/console/passkey": ("answer", "next"),
    "/console/passkey/question": ("act",),
    "/console/password/{secret}": ("password",),
    "/console/invitation/{secret}": ("password", "name"),
    "/console/sign-in/{secret}": (),
    "/console/mailbox": (),
    "/console/assets/{secret}": (),
}


def refused(seed: int, number: int, scene: Scene) -> PageProbe:
    random = Random(f"{seed}:refused:{number}")
    return random.choices(_MAKERS, _WEIGHTS)[0](random, scene)


def _any_page(random: Random, scene: Scene, person: Person) -> str:
    """The address of a page that this person may open."""
    pages = scene.book.staff if person.is_staff else scene.book.own
    return random.choice([each for each in pages if may(person, each) and each.page.show]).path


def _queries(random: Random, scene: Scene) -> PageProbe:
    person = random.choice(list(scene.cast.people.values()))
    path = _any_page(random, scene, person) if random.random() < 0.9 else f"/console{random.choice(OWN_PAGES)}"
    target = f"{path}?{query(random, scene)}"
    return asking("queries", "GET", target, [person.header, client(random)], allowed=_PAGE, person=person)


def _genuine(random: Random, scene: Scene) -> PageProbe:
    person = random.choice(list(scene.cast.people.values()))
    target = _any_page(random, scene, person) + random.choice(("", "", "?lang=en"))
    return asking("genuine", "GET", target, [person.header, client(random)], allowed=_PAGE, person=person)


def _foreign(random: Random, scene: Scene) -> PageProbe:
    """Addresses of another merchant, of the other side of the house, and of what is no merchant at all."""
    how = random.random()
    if how < 0.45:
        person, address = random.choice(scene.team()), random.choice(scene.book.crossed)
        allowed: tuple[int, ...] = (404,) if may(person, address) else (403,)
        if method_of(address, Random(0)) != "GET":
            allowed = (403, 404)
    elif how < 0.75:
        person, address, allowed = random.choice(scene.team()), random.choice(scene.book.foreign), (403,)
    elif how < 0.9:
        person, address, allowed = random.choice(scene.team()), random.choice(scene.book.staff), (403,)
    else:
        person, address, allowed = random.choice(scene.staff()), random.choice(scene.book.own), (403,)
    method = method_of(address, random)
    if method == "POST":
        allowed = tuple({*allowed, 403})
    headers = [person.header, client(random)]
    body = b""
    if method == "POST":
        headers += [FORM, same_site(random, scene)]
        body = urlencode({"csrf": person.csrf, "act": random.choice(("status", "disable", "", "resend"))}).encode()
    return asking("foreign addresses", method, address.path, headers, body, allowed=allowed, person=person)


def _foreign_fields(random: Random, scene: Scene) -> PageProbe:
    """Good forms that name a key, a person, an invitation, a session or a passkey of the foreign merchant."""
    name = random.choice(list(scene.foreign.fields))
    value = random.choice(scene.foreign.fields[name])
    forms = [
        each for each in posted_forms(scene, staff=False) if name in dict(each.fields) or name in dict(each.choices)
    ]
    act = {"session": "end", "passkey": "remove_passkey"}.get(name)
    form = PageForm("/console/security", (("act", act),)) if act else random.choice(forms)
    person = scene.cast.people["owner"]
    pairs = {**dict(filled(form, random)), name: value, "csrf": person.csrf}
    headers = [person.header, client(random), same_site(random, scene), FORM]
    body = urlencode(pairs).encode()
    return asking("foreign ids", "POST", form.action, headers, body, allowed=(303, 404, 409, 422), person=person)


def _paths(random: Random, scene: Scene) -> PageProbe:
    """An address in which one part is odd."""
    person = random.choice(list(scene.cast.people.values()))
    address = random.choice(scene.book.staff if person.is_staff else scene.book.own)
    parts = address.path.split("/")
    at = random.randrange(1, len(parts))
    if random.random() < 0.75:
        parts[at] = odd_encoded(random)[:3000]
    elif random.random() < 0.5:
        parts.insert(at, odd_encoded(random)[:300])
    else:
        parts.append(random.choice(("", "..", ".", "x", "%00", "new")))
    allowed = (200, 303, 400, 401, 403, 404, 405, 409, 422)
    return asking("paths", "GET", "/".join(parts), [person.header, client(random)], allowed=allowed, person=person)


def _odd_methods(random: Random, scene: Scene) -> PageProbe:
    person = random.choice(list(scene.cast.people.values()))
    method = random.choice(_METHODS)
    address = random.choice(scene.book.staff if person.is_staff else scene.book.own)
    path = address.path if random.random() < 0.8 else random.choice(tuple(_OUTSIDE))
    headers = [person.header, client(random)]
    if method == "POST":
        headers += [FORM, ("Sec-Fetch-Site", "cross-site")]
    allowed = (403, 404, 405) if method not in ("HEAD",) else (200, 303, 403, 404, 405, 409, 410)
    return asking("methods", method, path, headers, allowed=allowed, person=person)


def _outside(random: Random, scene: Scene) -> PageProbe:
    """Somebody without a session at the pages that anybody may open: nobody is signed in, and no mail leaves."""
    path = random.choice(tuple(_OUTSIDE))
    fields = _OUTSIDE[path]
    path = path.replace(
        "{secret}",
        random.choice((odd_encoded(random)[:400], "A" * 43, scene.names[f"{scene.own.word}_invitation"][:-1] + "-")),
    )
    headers = [client(random)]
    allowed = (200, 303, 404, 410, 422, 429)
    if random.random() < 0.35 or not fields:
        target = path if random.random() < 0.5 else f"{path}?{query(random, scene)}"
        return asking("without a session", "GET", target, headers, allowed=(*allowed, 405))
    pairs = [
        f"{name}={odd_encoded(random)}" for name in (*fields, *random.choices(fields, k=random.choice((0, 0, 1, 30))))
    ]
    if "act" in fields and random.random() < 0.5:
        pairs.append("act=make")
    random.shuffle(pairs)
    headers += [FORM, same_site(random, scene)]
    body = "&".join(pairs).encode()
    return asking("without a session", "POST", path, headers, body, allowed=allowed)


def _headers(random: Random, scene: Scene) -> PageProbe:
    person = random.choice(list(scene.cast.people.values()))
    names = (
        "Accept-Language",
        "Accept-Encoding",
        "User-Agent",
        "Referer",
        "Range",
        "If-None-Match",
        "Accept",
        "Host",
        "Forwarded",
    )
    more = [(random.choice(names), _line(odd_text(random))) for _ in range(random.randint(1, 3))]
    target = _any_page(random, scene, person)
    return asking("headers", "GET", target, [person.header, client(random), *more], allowed=_PAGE, person=person)


def _line(text: str) -> str:
    """What stays within one line of a head."""
    return "".join(each for each in text if each not in "\r\n\0" and (ord(each) >= 32 and ord(each) != 127))[
        :2000
    ].strip()


def _damaged_requests(random: Random, scene: Scene) -> PageProbe:
    """Good requests with bits flipped or bytes cut out. They hold no token, so they change nothing."""
    person = random.choice(list(scene.cast.people.values()))
    address = random.choice(scene.book.staff if person.is_staff else scene.book.own)
    headers = [person.header, FORM, client(random)]
    raw = wire("", method_of(address, random), address.path, headers, b"csrf=x&act=y").raw
    return PageProbe(CONSOLE + "damaged requests", damaged(random, raw), hides=not person.is_staff)


_KINDS: Final[Mapping[Callable[[Random, Scene], PageProbe], int]] = {
    _queries: 20,
    _genuine: 5,
    _foreign: 14,
    _foreign_fields: 5,
    _paths: 8,
    without_right: 8,
    forged: 12,
    cookies: 9,
    stale: 4,
    _odd_methods: 5,
    _outside: 10,
    _headers: 3,
    _damaged_requests: 1,
}

_MAKERS: Final = tuple(_KINDS)

_WEIGHTS: Final = tuple(_KINDS.values())
