"""What every answer must satisfy, whatever was asked (docs/contract.md, "Errors"; docs/providers/README.md)."""

import json
from collections.abc import Sequence
from typing import Any, Final

from guichet.domain.errors import BY_CODE
from guichet.pages.page_request import HEADERS as PAGE_HEADERS
from reliability.fuzz.recorded import Probe
from reliability.fuzz.sockets import Answer

#: Answers to bytes that are no request, or too large a one, before there is a path: the connection ends with them. They
#: have the envelope of an invalid request under the status that HTTP has for it.
_REFUSALS_OF_PORT: Final = frozenset({400, 408, 413, 414, 431})
_PAGES: Final = ("/pay", "/checkout")
_CALLBACKS: Final = "/providers/"
_SUCCESS_KEYS: Final = {"success", "data", "meta", "warnings"}
#: Only the development profile serves it, and nobody promises anything about it.
_SIMULATOR: Final = "/simulator"


class Violation(Exception):
    """An answer that must not be. The message says why."""


def check(probe: Probe, answers: Sequence[Answer]) -> None:
    """Raises Violation."""
    for answer in answers:
        check_any(answer)
        if is_refusal_of_port(answer):
            check_refusal_of_port(answer)
        elif probe.whole:
            _check_by_path(probe, answer)
        else:
            _check_by_itself(answer)


def is_refusal_of_port(answer: Answer) -> bool:
    return answer.closes and answer.status in _REFUSALS_OF_PORT


def check_any(answer: Answer) -> None:
    if answer.status >= 500:
        raise Violation(f"status {answer.status}: {answer.body[:300]!r}")
    if b"Traceback" in answer.body:
        raise Violation("a traceback in the answer")
    if answer.header("content-type") is None and answer.body:
        raise Violation("a body without a content type")


def check_refusal_of_port(answer: Answer) -> None:
    if _envelope_code(answer) != "invalid_request":
        raise Violation(f"the port refuses with {answer.body[:300]!r}")


def _check_by_path(probe: Probe, answer: Answer) -> None:
    path = probe.target.partition("?")[0]
    if path.startswith(_SIMULATOR):
        return
    if path.startswith(_CALLBACKS) and answer.status == 200:
        if answer.body:
            raise Violation("the answer to a callback tells something")
    elif path.startswith(_CALLBACKS) and answer.status == 413:
        check_refusal_of_port(answer)
    elif any(path == prefix or path.startswith(f"{prefix}/") for prefix in _PAGES):
        check_page(answer)
    elif answer.status >= 400:
        check_envelope(answer, bodiless=probe.method == "HEAD")
    elif path.startswith("/v1/") and probe.method != "HEAD":
        _check_success(answer)


def _check_by_itself(answer: Answer) -> None:
    """The path is not known: an error must be one of those that the service has."""
    if answer.status < 400 or answer.status == 413:
        return
    if (answer.header("content-type") or "").startswith("text/html"):
        check_page(answer)
    else:
        check_envelope(answer, bodiless=not answer.body)


def check_envelope(answer: Answer, *, bodiless: bool = False) -> None:
    """The contract's envelope, with a stable code that belongs to its status. `bodiless`: an answer to HEAD."""
    if answer.header("content-type") != "application/json":
        raise Violation(f"an error outside the envelope: {answer.status} {answer.headers} {answer.body[:300]!r}")
    if bodiless:
        return
    code = _envelope_code(answer)
    if BY_CODE[code].status != answer.status:
        raise Violation(f"{answer.status} with the code {code!r}")
    if answer.status == 429 and not (answer.header("retry-after") or "").isdigit():
        raise Violation("a 429 without Retry-After")
    if answer.status == 401 and answer.header("www-authenticate") != "Bearer":
        raise Violation("a 401 without WWW-Authenticate")


def _envelope_code(answer: Answer) -> str:
    """The stable code of an error in the contract's envelope."""
    body = _object(answer)
    error = body.get("error")
    if set(body) != {"success", "error"} or body["success"] is not False or not isinstance(error, dict):
        raise Violation(f"not the error envelope: {answer.body[:300]!r}")
    if set(error) - {"details", "reason", "reference"} != {"code", "message"} or not isinstance(error["message"], str):
        raise Violation(f"not an error of the envelope: {answer.body[:300]!r}")
    code = str(error["code"])
    if code not in BY_CODE:
        raise Violation(f"an unknown code: {code!r}")
    if "details" in error and code != "invalid_request":
        raise Violation(f"details of {code}")
    return code


def check_page(answer: Answer) -> None:
    """The headers of every page; a page of HTML also has its content security policy."""
    missing = [name for name in PAGE_HEADERS if answer.header(name.lower()) is None]
    if missing:
        raise Violation(f"a page without {', '.join(missing)}: {answer.status}")
    html = (answer.header("content-type") or "").startswith("text/html")
    if html and not (answer.header("content-security-policy") or "").startswith("default-src 'none'"):
        raise Violation("a page of HTML without its content security policy")
    if answer.status >= 400 and not html:
        raise Violation(f"an error of the pages that is no page: {answer.status} {answer.body[:200]!r}")
    if 300 <= answer.status < 400 and answer.status != 303:
        raise Violation(f"a page redirects with {answer.status}")


def _check_success(answer: Answer) -> None:
    if answer.status not in (200, 201):
        raise Violation(f"the API answers {answer.status}")
    body = _object(answer)
    if body.get("success") is not True or not {"success", "data"} <= set(body) <= _SUCCESS_KEYS:
        raise Violation(f"a success outside the envelope: {answer.body[:300]!r}")


def _object(answer: Answer) -> dict[str, Any]:
    try:
        body = json.loads(answer.body.decode("utf-8"))
    except ValueError:
        raise Violation(f"{answer.status} with a body that is no JSON: {answer.body[:300]!r}") from None
    if not isinstance(body, dict):
        raise Violation(f"{answer.status} with a body that is no object")
    return body
