"""What the library raises.

GuichetError
├── ApiConnection            no answer, or one that nobody can read
├── Unauthorized             401
├── PaymentFailed            402: `reason` says why, `reference` names the payment
├── Forbidden                403
├── NotFound                 404
├── Conflict                 409: `reason` says why
├── InvalidRequest           422: `details` names the fields
├── RateLimited              429: `retry_after`, in seconds
├── ServerError              5xx
└── SignatureVerification    a webhook that is not ours, or too old
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class GuichetError(Exception):
    """Decide by the class, `code` and `reason`. The message is a sentence for people, and may change."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        reason: str | None = None,
        reference: str | None = None,
        details: Mapping[str, list[str]] | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.reason = reason
        self.reference = reference
        self.details = details or {}
        self.request_id = request_id
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.message} (X-Request-Id: {self.request_id})" if self.request_id else self.message


class ApiConnection(GuichetError): ...


class Unauthorized(GuichetError): ...


class PaymentFailed(GuichetError): ...


class Forbidden(GuichetError): ...


class NotFound(GuichetError): ...


class Conflict(GuichetError): ...


class InvalidRequest(GuichetError): ...


class RateLimited(GuichetError): ...


class ServerError(GuichetError): ...


class SignatureVerification(GuichetError): ...


_CLASSES: dict[int, type[GuichetError]] = {
    401: Unauthorized,
    402: PaymentFailed,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    422: InvalidRequest,
    429: RateLimited,
}


def read_answer(status: int, headers: Mapping[str, str], body: bytes) -> Any:
    """The decoded body of a success; raises the error of anything else."""
    request_id = headers.get("x-request-id")
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        answer = {}
    if 200 <= status < 300:
        if "data" in answer:
            return answer
        raise ApiConnection("La réponse est illisible.", status=status, request_id=request_id)
    error = answer.get("error") or {}
    seconds = headers.get("retry-after", "")
    raise _CLASSES.get(status, ServerError if status >= 500 else GuichetError)(
        error.get("message", f"Réponse inattendue : HTTP {status}."),
        status=status,
        code=error.get("code"),
        reason=error.get("reason"),
        reference=error.get("reference"),
        details=error.get("details"),
        request_id=request_id,
        retry_after=float(seconds) if seconds.isdigit() else None,
    )
