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
