"""Bodies that are no forms, and files that are no documents or statements."""

import gzip
import json
from random import Random
from typing import Final
from urllib.parse import quote_plus

from reliability.fuzz.console.cast import Person
from reliability.fuzz.console.pages import PageForm
from reliability.fuzz.console.requests import (
    ANSWERED,
    PageProbe,
    Scene,
    asking,
    client,
    encoded_pair,
    filled,
    multipart,
    same_site,
)
from reliability.fuzz.console.values import odd_text
from reliability.fuzz.mutations import damaged, gzip_bomb
from reliability.fuzz.recorded import FORM

_FILES: Final = (
    *(
        b"%PDF-1.7 x",
        b"<script>zq7(1)</script>",
        b"\x89PNG\r\n\x1a\n",
        b"GIF89a",
        b"\xff\xd8\xff\xe0",
        b"PK\x03\x04",
        b"",
    ),
    *(
        b"MZ",
        b"<svg xmlns='http://www.w3.org/2000/svg' onload='zq7(1)'/>",
        b"%PDF",
        b"\0" * 900,
        b"#!/bin/sh\n",
        b"--zq7--",
        b"reference,amount,date\nx,5,2026-01-01\n",
        b'reference;amount;status\n"<img src=x onerror=zq7(1)>;5;\xe2\x80\xaedone\n',
        b"reference,amount,date\n" + b"=1+1,5,2026-01-01\n" * 300,
    ),
)

_FILE_NAMES: Final = (
    *(
        "../../../etc/passwd.pdf",
        "a.pdf\0.exe",
        "a" * 3000 + ".pdf",
        "<img src=x onerror=zq7(1)>.pdf",
        'a";x="b.pdf',
        ".pdf",
        "",
    ),
    *(
        "\u202efdp.exe",
        "a\r\nX: y.pdf",
        "CON.pdf",
        "a.PDF",
        "a.pdf.",
        "=1+1.pdf",
        "é\u0301.png",
        "\x1b[2J.pdf",
        "C:\\a\\b.pdf",
    ),
)

_CONTENT_TYPES: Final = (
    *(
        "text/plain",
        "application/json",
        "application/xml",
        "",
        "application/x-www-form-urlencoded; charset=utf-16",
        "é",
    ),
    *("multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=" + "b" * 3000),
    *("multipart/mixed; boundary=zq7", 'multipart/form-data; boundary="zq7', "application/x-www-form-urlencoded,x/y"),
)


def upload(random: Random, scene: Scene, form: PageForm, person: Person) -> PageProbe:
    name, content = random.choice(_FILE_NAMES), random.choice(_FILES) * random.choice((1, 1, 1, 50))
    if random.random() < 0.04:
        content = b"%PDF-1.7 " + b"a" * random.choice((5 * 1024 * 1024 - 9, 5 * 1024 * 1024 + 1, 6 * 1024 * 1024))
    if random.random() < 0.3:
        name, content = f"a{random.randrange(1000)}.pdf", b"%PDF-1.7 " + str(random.random()).encode()
    kind, body = multipart([("csrf", person.csrf), *filled(form, random)], name, content)
    how = random.random()
    if how < 0.25:
        body = body[: random.randrange(len(body))]
    elif how < 0.4:
        body = damaged(random, body[:4000])
    elif how < 0.5:
        kind = ("Content-Type", random.choice(_CONTENT_TYPES))
    elif how < 0.6:
        _, second = multipart(
            [(odd_text(random)[:200].replace('"', ""), odd_text(random)[:500])] * 25, "b.pdf", content
        )
        body = body.removesuffix(b"--zq7--\r\n") + second
    headers = [person.header, client(random), same_site(random, scene), kind]
    return asking("uploads", "POST", form.action, headers, body, allowed=ANSWERED, person=person)


def odd_body(random: Random, scene: Scene, form: PageForm, person: Person) -> PageProbe:
    """Bodies that are no forms, too large, in another encoding, or of another type."""
    pairs = [f"csrf={quote_plus(person.csrf)}", *(encoded_pair(*each) for each in filled(form, random))]
    body = "&".join(pairs).encode()
    headers = [person.header, client(random), same_site(random, scene)]
    how = random.random()
    if how < 0.25:
        body, more = damaged(random, body), [FORM]
    elif how < 0.4:
        body, more = body + b"&z=" + b"a" * random.choice((16_000, 16_500, 70_000, 1_100_000)), [FORM]
    elif how < 0.5:
        body, more = (
            gzip_bomb() if random.random() < 0.3 else gzip.compress(body, mtime=0),
            [FORM, ("Content-Encoding", "gzip")],
        )
    elif how < 0.6:
        body, more = json.dumps(dict(filled(form, random))).encode(), [("Content-Type", "application/json")]
    elif how < 0.75:
        kind, body = multipart([("csrf", person.csrf), *filled(form, random)], "a.pdf", random.choice(_FILES))
        body, more = body[: random.randrange(len(body))], [kind]
    else:
        more = [("Content-Type", random.choice(_CONTENT_TYPES))]
    method, path = "POST", form.action.partition("?")[0]
    return asking("bodies", method, path, [*headers, *more], body, allowed=ANSWERED, person=person)
