"""The examples of the OpenAPI document: what a real run answered and sent.

`python -m tests.frozen` records them into guichet/data/examples.json, and a test compares them with what the service
does now. What chance makes (references, secrets, tokens) is replaced by lasting values; nothing is written by hand.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

FILE: Final = Path(__file__).parents[1] / "data" / "examples.json"


class WebhookExample(msgspec.Struct, frozen=True):
    """A delivery: its body, and the `X-Service-Signature` of the body's compact text under the example's secret."""

    signature: str
    body: dict[str, Any]


class RecordedExamples(msgspec.Struct, frozen=True):
    """`answers`: operation → title → body of a success; `errors`: code → body; `webhooks`: event → delivery."""

    answers: dict[str, dict[str, dict[str, Any]]]
    errors: dict[str, dict[str, Any]]
    webhooks: dict[str, WebhookExample]


@cache
def recorded() -> RecordedExamples:
    return msgspec.json.decode(FILE.read_bytes(), type=RecordedExamples)


def as_examples(titled: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Title → value, in the form of OpenAPI's `examples`."""
    return {title: {"value": value} for title, value in titled.items()}
