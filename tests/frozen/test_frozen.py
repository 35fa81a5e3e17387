"""What the service does now is what the frozen files say; `python -m tests.frozen` writes them anew."""

from pathlib import Path

import pytest

from tests.contract.tables import column, table
from tests.frozen import answers, commands, libraries, openapi, webhooks
from tests.frozen.recording import frozen
from tests.frozen.service import Settings


def _compare(recorded: str, name: str) -> None:
    """By lines: the first that differs is shown, not all of the file."""
    assert recorded.splitlines() == frozen(name).splitlines()


async def test_the_openapi_document(sqlite_settings: Settings) -> None:
    _compare(await openapi.record(sqlite_settings), "openapi.json")


async def test_every_webhook(sqlite_settings: Settings) -> None:
    _compare(await webhooks.record(sqlite_settings), "webhooks.json")


async def test_every_answer(settings: Settings) -> None:
    _compare(await answers.record(settings), "answers.json")


@pytest.mark.parametrize("file", libraries.files(), ids=lambda file: str(file.relative_to(libraries.SDKS)))
def test_what_the_libraries_take_from_here(file: Path) -> None:
    assert file.read_text(encoding="utf-8").splitlines() == libraries.files()[file].splitlines()


def test_the_help_of_every_command() -> None:
    _compare(commands.record(), "help.txt")


@pytest.mark.parametrize("code", [row["Code"] for row in table("errors") if row["Emitted"] == "yes"])
def test_every_error_code_is_among_the_answers(code: str) -> None:
    assert rf"\"code\":\"{code}\"" in frozen("answers.json")


@pytest.mark.parametrize("row", table("endpoints"), ids=lambda row: f"{row['Method']} {row['Path']}")
def test_every_endpoint_is_among_the_answers(row: dict[str, str]) -> None:
    path = row["Path"].partition("{")[0]
    assert f'"line": "{row["Method"]} /v1{path}' in frozen("answers.json")


@pytest.mark.parametrize("event", column("events", "Event"))
def test_every_event_is_among_the_webhooks(event: str) -> None:
    assert f'"x-service-event": "{event}"' in frozen("webhooks.json")
