"""Hostile forms of somebody's own account, sent by people whose sessions may end by it."""

import base64
import json
from random import Random
from typing import Final
from urllib.parse import quote_plus

from reliability.fuzz.console.requests import PageProbe, Scene, asking, client, encoded_pair, query, same_site
from reliability.fuzz.console.values import odd_encoded
from reliability.fuzz.recorded import FORM


def _passkey_answers() -> tuple[str, ...]:
    """What a browser's answer could look like."""
    client_data = [
        b"",
        b"{}",
        b'{"challenge":"AAAA"}',
        b'{"challenge":"\xc3\xa9"}',
        b'{"challenge":1}',
        b"\xff",
        b"[" * 3000,
    ]
    texts = [base64.urlsafe_b64encode(each).decode().rstrip("=") for each in client_data]
    answers = [json.dumps({"id": "AAAA", "response": {"clientDataJSON": text}}) for text in (*texts, "é", "=", "A")]
    return (
        *answers,
        "{}",
        "null",
        '{"id":1,"response":{}}',
        '{"id":"\\ud800","response":{"clientDataJSON":"e30"}}',
        "[" * 5000,
    )


_ANSWERS: Final = _passkey_answers()


def of_own_account(random: Random, scene: Scene) -> PageProbe:
    """The forms of somebody's own account, sent by people whose sessions may end by it."""
    person = random.choice(scene.cast.leavers)
    path, fields = random.choice(
        (
            ("/console/security", ("act", "session", "passkey", "answer", "name")),
            ("/console/security/password", ("present", "password")),
            ("/console/factor", ("code", "next")),
            ("/console/factor/change", ("code",)),
            ("/console/factor/setup", ("code",)),
            ("/console/passkey", ("answer", "next")),
            ("/console/passkey/question", ("act",)),
            ("/console/sign-out", ()),
        )
    )
    good = {
        "act": ("end", "end_others", "add_passkey", "remove_passkey", "recovery_codes", "make"),
        "answer": _ANSWERS,
        "next": ("/console/../..//evil.example", "//evil.example", "https://evil.example", "/admin", "/console\\evil"),
    }
    pairs = [f"csrf={quote_plus(person.csrf)}"]
    for name in fields:
        usual = random.random() < 0.6 and name in good
        pairs.append(encoded_pair(name, random.choice(good[name])) if usual else f"{name}={odd_encoded(random)}")
    headers = [person.header, client(random), same_site(random, scene), FORM]
    if random.random() < 0.2:
        return asking(
            "own account", "GET", f"{path}?{query(random, scene)}", headers[:2], allowed=(200, 303, 405), person=None
        )
    body = "&".join(pairs).encode()
    return asking("own account", "POST", path, headers, body, allowed=(200, 303, 403, 409, 413, 422, 429), person=None)
