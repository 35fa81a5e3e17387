"""What forms of merchants and of the back office have in common."""

import re
from collections.abc import Mapping
from typing import Annotated, Final
from uuid import uuid4

from pydantic import BeforeValidator

from guichet.pages.fields import Fields

_TOKEN: Final = re.compile(r"[0-9a-f]{32}")
_MAX_REASON: Final = 500

#: A box that says that somebody who was told what will happen wants it done.
Confirmed = Annotated[bool, BeforeValidator(lambda text: text == "yes")]


def _one_line(text: str) -> str | None:
    reason = " ".join(text.split())
    return reason if reason and len(reason) <= _MAX_REASON and reason.isprintable() else None


#: Why somebody of the staff does something, for the audit log; None if no reason was given.
Reason = Annotated[str | None, BeforeValidator(_one_line)]


class ReasonForm(Fields):
    reason: Reason = None


def new_form_token() -> str:
    """For the hidden field `form`: a form counts once, however often it is sent."""
    return uuid4().hex


def form_token(form: Mapping[str, str]) -> str | None:
    """The token of a form of ours; None for any other text."""
    token = form.get("form", "")
    return token if _TOKEN.fullmatch(token) else None
