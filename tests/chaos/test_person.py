"""What a person of a trial concludes from answers, on a server that answers as ours does when a session ends."""

import asyncio
import random

from reliability.api_client import ApiClient
from reliability.people.browser import Browser
from reliability.people.journal import Deed, PeopleJournal
from reliability.people.person import Filled, Person
from tests.console.pages import Page
from tests.fakes.http_server import ReceivedRequest, ScriptedServer


def _redirect(place: str) -> bytes:
    return f"HTTP/1.1 303 See Other\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode()


def _page(*fields: str) -> bytes:
    inputs = "".join(f'<input name="{field}" value="">' for field in fields)
    body = f'<form method="post">{inputs}</form>'.encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


async def test_a_form_that_was_answered_counts_although_its_next_page_asks_to_sign_in() -> None:
    answers = {
        "GET /form ": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "POST /form ": _redirect("/done"),
        "GET /done ": _redirect("/console/sign-in"),
        "GET /console/sign-in ": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    }

    async def answer(writer: asyncio.StreamWriter, request: ReceivedRequest) -> None:
        writer.write(next(raw for begin, raw in answers.items() if request.line.startswith(begin)))

    def fill(page: Page) -> Filled:
        return page.path, {"text": "note"}

    async with ScriptedServer(answer) as server, ApiClient([server.url(path="")]) as api:
        person = Person("awa@guichet.example", Browser(api), PeopleJournal(), random.Random(1))
        deed = Deed("merchant.note_added", "note", person.email)
        told = await person.act(deed, "/form", fill)
        assert (told is not None and told.place, deed.least, deed.most) == ("/done", 1, 1)
        assert [each.line.split()[0] for each in server.received].count("POST") == 1


async def test_a_refused_code_does_not_prove_that_the_cookie_of_a_lost_answer_is_still_good() -> None:
    """What a killed server sent before may be committed between two codes: the second one is refused, and the session
    is that of a cookie which nobody got."""
    refused = b"HTTP/1.1 422 Unprocessable\r\nContent-Length: 0\r\n\r\n"
    answers = {
        "GET /form ": [
            _page(),
            _redirect("/console/factor"),
            _redirect("/console/factor"),
            _redirect("/console/sign-in"),
            _page(),
        ],
        "GET /console/factor ": [_page("csrf", "code")] * 2,
        "POST /console/factor ": [b"", refused],
        "GET /console/sign-in ": [_page("csrf", "email", "password")],
        "POST /console/sign-in ": [_redirect("/console")],
        "GET /console ": [_page()],
    }

    async def answer(writer: asyncio.StreamWriter, request: ReceivedRequest) -> None:
        raw = next(prepared for begin, prepared in answers.items() if request.line.startswith(begin)).pop(0)
        writer.write(raw)
        if not raw:
            writer.close()

    async with ScriptedServer(answer) as server, ApiClient([server.url(path="")]) as api:
        person = Person("awa@guichet.example", Browser(api), PeopleJournal(), random.Random(1), seed="A" * 32)
        await person.open("/form")
        page = await person.open("/form")
        assert (page.status, person.journal.faults) == (200, [])
        assert not any(answers.values())
