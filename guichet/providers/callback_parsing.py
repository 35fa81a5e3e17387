"""Reading a callback: its JSON object and its headers."""

from typing import Any

from guichet.providers.base import Callback
from guichet.providers.json_body import decode_json_object


def parse_callback_json(callback: Callback) -> dict[str, Any] | None:
    """The JSON object in the body; None when there is none."""
    return decode_json_object(callback.body)


def header(callback: Callback, name: str) -> str:
    """The value of a header, whatever the case of its name; empty when it is absent."""
    wanted = name.lower()
    return next((value for key, value in callback.headers.items() if key.lower() == wanted), "")
