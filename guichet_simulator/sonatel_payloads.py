"""Sonatel's vocabulary: states, and errors as `application/problem+json` (docs/providers/sonatel.md, "Errors")."""

from collections.abc import Mapping
from typing import Final

from guichet_simulator.base import Fault

DIAL: Final = "221"
STATES: Final = {"pending": "PENDING", "succeeded": "SUCCESS", "failed": "FAILED", "expired": "CANCELLED"}


def problem(status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> Fault:
    body = {
        "type": "https://developer.orange-sonatel.com/errors",
        "title": detail,
        "instance": "/",
        "status": str(status),
        "code": code,
        "detail": detail,
        "violations": [],
    }
    return Fault(status, body, {"Content-Type": "application/problem+json", **(headers or {})})
