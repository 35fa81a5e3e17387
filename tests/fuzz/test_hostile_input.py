"""A short slice of the trial "Hostile input" (docs/reliability.md), against the real command."""

from pathlib import Path
from random import Random

import pytest

from guichet.settings import Settings
from reliability.fuzz import trial
from reliability.fuzz.answers import Hostile, hostile
from reliability.fuzz.checks import Violation, check
from reliability.fuzz.exchange import Violated
from reliability.fuzz.failure import save, saved_probe
from reliability.fuzz.recorded import Probe
from reliability.fuzz.requests import probe
from reliability.fuzz.sockets import Answer
from reliability.fuzz.trial import Plan

SEED = 20_261_122
JSON = ("content-type", "application/json")
CALL = Probe("", b"", "GET", "/v1/balance")


@pytest.mark.slow
@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_hostile_requests_and_answers_find_nothing(settings: Settings) -> None:
    """On the database that refuses more; `make fuzz` does it on both."""
    plan = Plan(requests=180, answers=20, seed=SEED, rest=0.2, limit=30)

    found = await trial.run(settings, plan, lambda *_: None)

    assert found.faults == []
    assert found.sent.kinds.total() >= plan.requests
    assert sum(count for kind, count in found.answered.items() if kind != "genuine") >= plan.answers
    assert found.audit_is_clean
    assert {"200", "201", "404", "405", "422", "429"} <= set(found.sent.statuses), "too poor to tell anything"
    assert len(found.agreement.payments) > 1, "too poor to tell anything"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(500, [JSON], b'{"success":false,"error":{"code":"server_error","message":"x"}}'), "status 500"),
        (Answer(404, [JSON], b'{"success":false,"error":{"code":"conflict","message":"x"}}'), "with the code"),
        (Answer(404, [JSON], b'{"success":false,"error":{"code":"lost","message":"x"}}'), "unknown code"),
        (Answer(404, [JSON], b'{"success":false,"code":"not_found"}'), "not the error envelope"),
        (Answer(404, [("content-type", "text/plain")], b"Not Found"), "outside the envelope"),
        (Answer(400, [JSON, ("connection", "close")], b'{"detail":"x"}'), "not the error envelope"),
        (Answer(200, [JSON], b'{"data":1}'), "success outside the envelope"),
        (Answer(302, [JSON], b""), "the API answers 302"),
    ],
)
def test_the_checks_see_what_is_wrong(answer: Answer, said: str) -> None:
    with pytest.raises(Violation, match=said):
        check(CALL, [answer])


def test_a_page_without_its_headers_is_seen() -> None:
    with pytest.raises(Violation, match="a page without Cache-Control"):
        check(Probe("", b"", "GET", "/pay/a/b"), [Answer(404, [("content-type", "text/html")], b"<p>")])


def test_a_seed_makes_the_same_requests_and_answers_again() -> None:
    known = dict.fromkeys(
        (
            *("receiver", "test_key", "live_key", "external_id", "payment", "refund", "card_page", "live_payment"),
            *("link", "link_page", "payment_page", "asset", "form_token_0"),
        ),
        "/a/b",
    )
    first, second = ([probe(SEED, number, known).kind for number in range(300)] for _ in range(2))
    answers: list[list[Hostile]] = []
    for _ in range(2):
        random = Random(SEED)
        answers.append([hostile(random, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") for _ in range(200)])
    assert first == second
    assert len(set(first)) == 12
    assert answers[0] == answers[1]


def test_a_saved_request_is_sent_again_with_the_names_of_another_run(tmp_path: Path) -> None:
    path = "/v1/payments/first"
    wrong = Violated(7, Probe("paths", f"GET {path} HTTP/1.1\r\n\r\n".encode(), "GET", path), "status 500")
    save(tmp_path / "failure.json", SEED, ["status 500"], wrong, {"payment": "first"}, [])

    again = saved_probe(tmp_path / "failure.json", {"payment": "second"})

    assert (again.kind, again.method, again.target) == ("paths", "GET", "/v1/payments/second")
    assert again.raw == b"GET /v1/payments/second HTTP/1.1\r\n\r\n"
