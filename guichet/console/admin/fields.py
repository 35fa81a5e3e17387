"""What the forms of the back office have in common."""

from typing import Final

from guichet.console.page_request import StaffRequest

#: Ids are 64-bit integers in both databases.
MAX_ID: Final = 2**63 - 1
_MAX_REASON: Final = 500
#: Characters of a number that was mistyped that its field shows again.
MOST_TYPED: Final = 40


def row_number(text: str | None) -> int | None:
    """A typed id, None if it is none."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) < 20 and 1 <= int(text) <= MAX_ID):
        return None
    return int(text)


def before(request: StaffRequest) -> int:
    """The page of a list that is shown: rows with an id below this one, all of them on the first page."""
    return row_number(request.query.get("before")) or MAX_ID


def reason_of(form: dict[str, str]) -> str | None:
    """Why something is done, on one line, for the audit log; None if it was not said."""
    reason = " ".join(form.get("reason", "").split())
    return reason if reason and len(reason) <= _MAX_REASON and reason.isprintable() else None
