"""Forms that must not be believed: without the right, with a wrong token, from another site, in a session that ended or
is damaged, or with an old second factor."""

from dataclasses import replace
from random import Random
from urllib.parse import urlencode

from guichet.console.sections import MerchantPage
from reliability.fuzz.console.cast import cookie_header
from reliability.fuzz.console.pages import Address
from reliability.fuzz.console.requests import (
    PageProbe,
    Scene,
    address_of,
    asking,
    client,
    may,
    method_of,
    posted_forms,
    posting,
    same_site,
)
from reliability.fuzz.console.values import odd_text
from reliability.fuzz.recorded import FORM


def without_right(random: Random, scene: Scene) -> PageProbe:
    """A form of somebody who may more, in the own session."""
    form = random.choice(posted_forms(scene, staff=random.random() < 0.4))
    address = address_of(form.action, scene)
    people = [each for each in scene.cast.people.values() if address is None or not may(each, address)]
    person = random.choice(people or list(scene.cast.people.values()))
    headers = [person.header, client(random), same_site(random, scene)]
    allowed, token = (403,), person.csrf
    if not people or address is None:
        token = "x"
    return posting("forms without the right", form, scene, random, headers, token, allowed, person)


def forged(random: Random, scene: Scene) -> PageProbe:
    """A good form with a token of another session, a damaged one, none; or sent by another site."""
    staff = random.random() < 0.35
    form = random.choice(posted_forms(scene, staff=staff))
    person = scene.cast.people["staff admin" if staff else "owner"]
    others = [each.csrf for each in scene.cast.people.values() if each is not person]
    tokens = (*others, scene.cast.ended.csrf, *(each.csrf for each in scene.cast.stale.values()))
    headers, token = [person.header, client(random)], random.choice(tokens)
    how = random.random()
    if how < 0.4:
        headers.append(same_site(random, scene))
        if random.random() < 0.5:
            token = random.choice(
                ("", "x" * 32, person.csrf[:-1], person.csrf + "A", person.csrf.swapcase(), odd_text(random)[:500])
            )
    else:
        token = person.csrf
        headers.append(
            random.choice(
                (
                    ("Sec-Fetch-Site", "cross-site"),
                    ("Sec-Fetch-Site", "same-site"),
                    ("Sec-Fetch-Site", "SAME-ORIGIN"),
                    ("Sec-Fetch-Site", ""),
                    ("Origin", "https://evil.example"),
                    ("Origin", scene.public_url + ".evil.example"),
                    ("Origin", scene.public_url.replace("https", "http")),
                    ("Origin", "https://pay.example:444"),
                )
            )
        )
    return posting("forged forms", form, scene, random, headers, token, (403,), person)


def cookies(random: Random, scene: Scene) -> PageProbe:
    """Sessions that ended, that are damaged, that wait for a second factor: nothing is shown and nothing done."""
    staff = random.random() < 0.3
    person = scene.cast.people["staff admin" if staff else "owner"]
    good = person.cookie
    wrong = random.choice(
        (
            *(
                scene.cast.ended.cookie,
                good[:-1],
                good + "A",
                good.swapcase(),
                good[::-1],
                "",
                "A" * 43,
                good[:20] + "%00" + good[20:],
            ),
            *(
                f" {good[1:]}",
                f"{good},{good}",
                "\xff" * 20,
                "A" * 6000,
                person.csrf,
                f"'{good}'",
                scene.cast.half.cookie,
            ),
        )
    )
    to_factor = wrong == scene.cast.half.cookie
    headers = [cookie_header(wrong), client(random)]
    if random.random() < 0.5:
        address = random.choice(scene.book.staff if staff else scene.book.own)
        method = method_of(address, random)
        path, body = address.path, urlencode({"csrf": person.csrf}).encode() if method == "POST" else b""
        headers += [FORM, same_site(random, scene)] if method == "POST" else []
        return asking("cookies", method, path, headers, body, allowed=(303,), to_sign_in=not to_factor)
    form = random.choice(posted_forms(scene, staff=staff))
    made = posting("cookies", form, scene, random, [*headers, same_site(random, scene)], person.csrf, (303,), None)
    return made if to_factor else replace(made, to_sign_in=True)


def stale(random: Random, scene: Scene) -> PageProbe:
    """What needs a second factor a few minutes old, with one that is older: sent on to give it, and nothing done."""
    name = random.choice(("owner", "staff admin"))
    person, forms = scene.cast.stale[name], []
    for form in posted_forms(scene, staff=person.is_staff):
        address = address_of(form.action, scene)
        if address is not None and _steps_up(address):
            forms.append(form)
    headers = [person.header, client(random), same_site(random, scene)]
    return posting("old second factors", random.choice(forms), scene, random, headers, person.csrf, (303,), person)


def _steps_up(address: Address) -> bool:
    """Forms whose every act needs it."""
    path = address.page.path
    if isinstance(address.page, MerchantPage):
        return path == "/team" or (
            address.env == "live" and (path.endswith("/refund") or path in ("/exports", "/developers"))
        )
    wallets = ("/wallets/{merchant:row}", "/wallets/{merchant:row}/close")
    return path in ("/merchants/{merchant:row}", "/merchants/new", *wallets, "/staff", "/modes")
