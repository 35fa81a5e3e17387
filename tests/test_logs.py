"""Logs never carry a secret or a full phone number, not even in an operator's own words."""

import json
import subprocess
import sys

from guichet.logs import redact


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
