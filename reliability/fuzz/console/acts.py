"""Hostile requests that may act: forms in the sender's own session, with its own token, whose values are absurd.

`act(seed, number, scene, staff=…)` is the entrance.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Final
from urllib.parse import quote_plus

from reliability.fuzz.console.bodies import odd_body, upload
from reliability.fuzz.console.cast import Person
from reliability.fuzz.console.own_account import of_own_account
from reliability.fuzz.console.pages import PageForm
from reliability.fuzz.console.requests import (
    ANSWERED,
    PageProbe,
    Scene,
    address_of,
    asking,
    client,
    encoded_pair,
    filled,
    may,
    query,
    same_site,
)
from reliability.fuzz.console.values import odd_encoded, odd_name
from reliability.fuzz.recorded import FORM


def act(seed: int, number: int, scene: Scene, *, staff: bool) -> PageProbe:
    random = Random(f"{seed}:{'staff' if staff else 'team'}:{number}")
    if not staff and random.random() < 0.12:
        return of_own_account(random, scene)
    form, person = _form_and_person(random, scene, staff=staff)
    if form.is_file:
        return upload(random, scene, form, person)
    make = random.choices(_MAKERS, _WEIGHTS)[0]
    # A search is an address, and has no body.
    return (_hostile_values if make is odd_body and form.is_search else make)(random, scene, form, person)


def _form_and_person(random: Random, scene: Scene, *, staff: bool) -> tuple[PageForm, Person]:
    form = random.choice(scene.book.staff_forms if staff else scene.book.forms)
    address = address_of(form.action, scene)
    everybody = scene.staff() if staff else scene.team()
    people = [each for each in everybody if address is None or may(each, address)]
    head = scene.cast.people["staff admin" if staff else "owner"]
    return form, head if random.random() < 0.6 else random.choice(people or [head])


def _send(
    random: Random,
    scene: Scene,
    kind: str,
    form: PageForm,
    person: Person,
    pairs: Sequence[str],
    *more: tuple[str, str],
) -> PageProbe:
    headers = [person.header, client(random), same_site(random, scene), *(more or [FORM])]
    body = "&".join(pairs).encode("utf-8", "surrogatepass")
    if form.is_search:
        target = f"{form.action.partition('?')[0]}?{'&'.join(pairs)}"
        return asking(kind, "GET", target, headers[:2], allowed=ANSWERED, person=person)
    return asking(kind, "POST", form.action, headers, body, allowed=ANSWERED, person=person)


def _hostile_values(random: Random, scene: Scene, form: PageForm, person: Person) -> PageProbe:
    """Some values are absurd; the rest is as a person would send it."""
    fields = dict(filled(form, random))
    pairs = {name: encoded_pair(name, value) for name, value in (("csrf", person.csrf), *_plausible(random, fields))}
    names = list(fields) or ["x"]
    for name in random.sample(names, min(len(names), random.choice((1, 1, 2, 5)))):
        if name != "act" or random.random() < 0.2:
            pairs[name] = f"{quote_plus(name)}={odd_encoded(random)}"
    return _send(random, scene, "hostile values", form, person, list(pairs.values()))


def _plausible(random: Random, fields: Mapping[str, str]) -> Sequence[tuple[str, str]]:
    """Empty fields as somebody fills them in, so that an absurd value beside them is looked at."""
    number = random.randrange(10**6)
    usual = {
        "reason": "Erreur de saisie",
        "name": f"Ama {number}",
        "email": f"ama{number}@team.example",
        "amount": "1500",
        "description": f"Panier {number}",
        "label": f"Panier {number}",
        "url": "https://shop.example/hook",
        "note": f"Note {number}",
        "text": f"Note {number}",
        "confirm": "yes",
        "from": "2026-11-01",
        "to": "2026-11-30",
    }
    return [(name, value or usual.get(name, "")) for name, value in fields.items()]


def _structure(random: Random, scene: Scene, form: PageForm, person: Person) -> PageProbe:
    """Fields that come twice, are missing, are unknown, or are too many."""
    pairs = [encoded_pair(name, value) for name, value in _plausible(random, dict(filled(form, random)))]
    for _ in range(random.randint(1, 3)):
        how = random.random()
        if how < 0.3 and pairs:
            name = random.choice(pairs).partition("=")[0]
            pairs.insert(random.randint(0, len(pairs)), f"{name}={odd_encoded(random)}")
        elif how < 0.55 and pairs:
            pairs.pop(random.randrange(len(pairs)))
        elif how < 0.75:
            pairs.append(f"{odd_name(random)}={odd_encoded(random)}")
        elif how < 0.85:
            pairs += [f"x{number}=y" for number in range(random.choice((10, 21, 300)))]
        elif pairs:
            pairs = [random.choice((pairs[0].partition("=")[0], "=", "&&", pairs[0].replace("=", "%3D"))), *pairs[1:]]
    token = f"csrf={quote_plus(person.csrf)}"
    pairs.insert(random.choice((0, 0, len(pairs))), token)
    return _send(random, scene, "missing, repeated and unknown fields", form, person, pairs)


def _with_query(random: Random, scene: Scene, form: PageForm, person: Person) -> PageProbe:
    """A form at an address with an absurd query."""
    pairs = [f"csrf={quote_plus(person.csrf)}", *(encoded_pair(*each) for each in filled(form, random))]
    changed = replace(form, action=f"{form.action.partition('?')[0]}?{query(random, scene)}")
    return _send(random, scene, "forms with queries", changed, person, pairs)


def _good(random: Random, scene: Scene, form: PageForm, person: Person) -> PageProbe:
    """As a person would send it: shows that the pages still act."""
    fields = dict(_plausible(random, dict(filled(form, random))))
    pairs = [encoded_pair(name, value) for name, value in (("csrf", person.csrf), *fields.items())]
    return _send(random, scene, "good forms", form, person, pairs)


_KINDS: Final[Mapping[Callable[[Random, Scene, PageForm, Person], PageProbe], int]] = {
    _hostile_values: 50,
    _structure: 17,
    odd_body: 14,
    _with_query: 5,
    _good: 14,
}

_MAKERS: Final = tuple(_KINDS)

_WEIGHTS: Final = tuple(_KINDS.values())
