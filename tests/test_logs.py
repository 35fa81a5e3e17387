"""Logs never carry a secret or a full phone number, not even in an operator's own words."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from guichet.logs import redact, without_emails


def test_what_an_operator_said_is_kept_without_the_number() -> None:
    raw = '400 {"phoneNumber":22997001234,"message":"compte +22997001234 inconnu","amount":5088}'
    logged = str(redact({"event": "initiation.unknown", "raw": raw})["raw"])
    assert "22997001234" not in logged
    assert '"amount":5088' in logged
    assert "229*****234" in logged


def test_references_stay_whole_and_secrets_do_not() -> None:
    line = redact(
        {
            "event": "x",
            "error": "payment 3894710b-b159-492e-9eb0-e2c270d96bda",
            "otp": "123456",
            "phone_number": "22997001234",
        },
    )
    assert line["error"] == "payment 3894710b-b159-492e-9eb0-e2c270d96bda"
    assert (line["otp"], line["phone_number"]) == ("[masked]", "229*****234")


PROGRAM = """
import logging, sys
from guichet.logs import configure_logs, log
configure_logs("info", machine_readable=sys.argv[1] == "json")
log.warning("mail.failed", mail=7, error="SMTPRecipientsRefused: 550 5.1.1 <awa.kossou+x@mail.example.com>: unknown")
log.info("x", anything="awa@example.com", path="/providers/a?mail=awa%40example.com", many=["awa@example.com"], n=3)
log.info("service.opened", database="postgresql://guichet@db.example:5432/guichet")
log.info("y", text='line\\nawa@example.com {"email":"awa@example.com"} (email)=(awa@exämple.com) mailto:awa@x.example')
logging.getLogger("aiosmtplib").warning("refused %s", "awa@example.com")
try:
    raise ValueError("Key (email)=(awa@example.com) already exists")
except ValueError:
    log.error("request.crashed", exc_info=True)
"""


@pytest.mark.parametrize("form", ["json", "console"])
def test_no_line_holds_an_email_address(form: str) -> None:
    """Whatever quotes it: a mail server, the database, a library, a traceback."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM, form], capture_output=True, text=True, check=True)
    written = ran.stderr.replace("postgresql://guichet@db.example:5432/guichet", "")
    assert len(written) < len(ran.stderr), "the user of a database stays"
    assert "@" not in written
    assert "%40" not in written
    assert "already exists" in written
    if form == "json":
        lines = [json.loads(line) for line in ran.stderr.splitlines()]
        assert (lines[0]["mail"], lines[1]["n"]) == (7, 3)
        assert lines[0]["error"] == "SMTPRecipientsRefused: 550 5.1.1 <[e-mail]>: unknown"


@pytest.mark.parametrize("text", ["a" * 200_000, "a@" * 100_000, "a." * 100_000, "@a.b" * 50_000, "%40" * 60_000])
def test_addresses_are_looked_for_in_one_pass(text: str) -> None:
    """What a provider answers is logged: with a quadratic search this test would not end."""
    assert len(without_emails(text)) <= 2 * len(text)


def test_people_are_logged_by_their_ids() -> None:
    """No call that logs takes an address, or the name of who acts, which is one in the console."""
    faults = []
    for path in Path("guichet").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            match call:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="log" | "unfiltered_log")), keywords=facts):
                    for part in (part for fact in facts for part in ast.walk(fact.value)):
                        match part:
                            case ast.Attribute(attr="email" | "recipient" | "requested_by"):
                                faults.append(f"{path}:{call.lineno}")
                            case ast.Attribute(value=ast.Name(id="actor" | "by"), attr="name"):
                                faults.append(f"{path}:{call.lineno}")
    assert faults == []


def test_what_libraries_say_is_a_line_like_any_other() -> None:
    """In a process of its own: what a program does to `logging` lasts."""
    program = """
import logging
from guichet.logs import configure_logs
configure_logs("info", machine_readable=True)
logging.getLogger("asyncpg.pool").warning("no connection for %s", "22997001234")
logging.getLogger("asyncio").info("of no interest")
try:
    [][0]
except IndexError:
    logging.getLogger("asyncio").exception("Task exception was never retrieved")
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    pool, task = map(json.loads, ran.stderr.splitlines())
    assert (pool["event"], pool["level"], pool["logger"]) == ("library", "warning", "asyncpg.pool")
    assert pool["detail"] == "no connection for 229*****234"
    assert (task["event"], task["level"], task["logger"]) == ("library", "error", "asyncio")
    assert "IndexError" in task["exception"]


@pytest.mark.parametrize(("form", "wanted"), [("json", '"request_id":"0123456789abcdef"'), ("console", "=01234567\n")])
def test_the_line_of_a_request_has_the_fields_of_an_event(form: str, wanted: str) -> None:
    program = """
import sys
from guichet.logs import RequestLine, configure_logs, log
configure_logs("info", machine_readable=sys.argv[1] == "json")
log.request(RequestLine("GET", "/v1/payments", 200, 3.1, "0123456789abcdef", 7, "test"))
log.request(RequestLine("GET", "/v1/\ufffd/*", 404, 0.2, "0123456789abcdef"))
"""
    ran = subprocess.run([sys.executable, "-c", program, form], capture_output=True, text=True, check=True)
    ours, strangers = ran.stderr.splitlines(keepends=True)
    assert wanted in ours
    assert wanted in strangers
    assert "merchant" not in strangers
    if form == "json":
        line = json.loads(ours)
        assert line.pop("timestamp").endswith("Z")
        assert line == {
            "event": "request",
            "method": "GET",
            "path": "/v1/payments",
            "status": 200,
            "ms": 3.1,
            "request_id": "0123456789abcdef",
            "merchant": 7,
            "env": "test",
            "level": "info",
        }
        assert json.loads(strangers)["path"] == "/v1/\ufffd/*"
    else:
        assert (
            ours[8:]
            == " [info   ] GET /v1/payments → 200" + 11 * " " + "ms=3.1 merchant=7 env=test request_id=01234567\n"
        )
