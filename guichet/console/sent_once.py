"""Forms that count once, however often they are sent: each that is shown has a random token of its own."""

import re
from collections.abc import Mapping
from typing import Final
from uuid import uuid4

_TOKEN: Final = re.compile(r"[0-9a-f]{32}")


def new_form_token() -> str:
    """For the hidden field `form`."""
    return uuid4().hex


def form_token(form: Mapping[str, str]) -> str | None:
    """The token of a form of ours; None for any other text."""
    token = form.get("form", "")
    return token if _TOKEN.fullmatch(token) else None
