"""What the trial of the console prints, and writes into docs/reliability.md."""

from collections.abc import Sequence
from typing import Final

from reliability.fuzz.console.requests import CONSOLE
from reliability.fuzz.console.trial import ConsoleFound
from reliability.fuzz.report import change, markdown, number, put, said, server_errors

_BEGIN: Final = "<!-- figures: fuzz-console -->"
_LIBRARIES: Final = ("uvicorn", "starlette", "jinja2", "python-multipart", "webauthn")


def table(found: Sequence[ConsoleFound]) -> str:
    """Markdown: one column for each database."""
    rows: list[tuple[str, list[str]]] = [
        ("Requests to the console", [number(each.sent.kinds.total()) for each in found]),
        ("Addresses of pages, forms found in them", [f"{each.pages}, {each.forms}" for each in found]),
        ("Answers 5xx", [number(server_errors(each.sent)) for each in found]),
        ("Answers that a rule forbids", [str(int(each.violated is not None)) for each in found]),
        ("Rows changed, sessions lost, errors in the log, other faults", [str(len(each.faults)) for each in found]),
        (
            "Rows compared: of everybody, of the foreign merchant",
            [f"{each.rows}, {each.foreign_rows}" for each in found],
        ),
        ("Rows that forms of the own merchant and of the staff made", [number(each.new_rows) for each in found]),
        (
            "Resident memory before → after, MB",
            [change(each.before.megabytes, each.after.megabytes) for each in found],
        ),
        ("Descriptors before → after", [f"{each.before.descriptors} → {each.after.descriptors}" for each in found]),
    ]
    for kind in sorted({kind for each in found for kind in each.sent.kinds}):
        rows.append((f"Requests: {kind.removeprefix(CONSOLE)}", [number(each.sent.kinds[kind]) for each in found]))
    for status in sorted({status for each in found for status in each.sent.statuses}):
        rows.append((f"Answered: {status}", [number(each.sent.statuses[status]) for each in found]))
    return markdown([each.database for each in found], rows)


def write(found: Sequence[ConsoleFound], seed: int, seconds: float) -> None:
    """Puts the figures into the section "Hostile input"."""
    put(_BEGIN, f"{said(seed, seconds, _LIBRARIES)}\n\n{table(found)}")
