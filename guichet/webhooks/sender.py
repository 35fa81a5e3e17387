"""One attempt at one delivery: signed, sent once, judged by the status (docs/contract.md, "Webhooks").

`X-Service-Signature`: `t=<unix seconds>,v1=<hex HMAC SHA-256>`. The signed text is `t`, a dot, the raw body; the key is
the environment's whole `whsec_…` string as UTF-8 (D33).

Beside it stand the headers of Standard Webhooks. Their signed text is `id.timestamp.body`, and their key is another
one: the bytes that the secret without `whsec_` is the base64 of.
"""

import hmac
import re
import time
from base64 import b64decode, b64encode
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from guichet import tracing
from guichet.clock import SECOND, Instant
from guichet.domain.events import ANSWER_TIMEOUT, SIGNATURE_AGE, Delivery, DeliveryError
from guichet.domain.records import Record
from guichet.http_client import HttpClient, Lost, NotSent, failure_kind

_SECONDS: Final = re.compile(r"[0-9]{1,15}")


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """The header's value for `body` sent at `timestamp` (Unix seconds)."""
    return f"t={timestamp},v1={_digest(secret, str(timestamp), body)}"


def verify(secret: str, header: str, body: bytes, now: int, tolerance: int = SIGNATURE_AGE) -> bool:
    """What a receiver does: the signature is ours, and at most `tolerance` seconds from `now` (Unix seconds).

    Parts other than `t` and `v1` are ignored, so that a second scheme can be added; a repeated part is refused.
    """
    pairs = [part.strip().partition("=") for part in header.split(",")]
    parts = {name: value for name, _, value in pairs}
    moment, signature = parts.get("t", ""), parts.get("v1", "")
    if len(parts) != len(pairs) or not _SECONDS.fullmatch(moment) or abs(now - int(moment)) > tolerance:
        return False
    return hmac.compare_digest(_digest(secret, moment, body).encode(), signature.encode())


def _digest(secret: str, moment: str, body: bytes) -> str:
    signature = _keyed(secret).copy()
    signature.update(moment.encode() + b"." + body)
    return signature.hexdigest()


@lru_cache(maxsize=4096)
def _keyed(secret: str) -> hmac.HMAC:
    """Looking up the hash and taking in the key is most of a signature: 5.1 µs for a webhook, 2.2 without."""
    return hmac.new(secret.encode(), digestmod="sha256")


def sign_by_the_standard(secret: str, delivery_id: str, timestamp: int, body: bytes) -> str:
    """One signature of `webhook-signature`."""
    signed = hmac.digest(_standard_key(secret), f"{delivery_id}.{timestamp}.".encode() + body, "sha256")
    return f"v1,{b64encode(signed).decode()}"


@lru_cache(maxsize=4096)
def _standard_key(secret: str) -> bytes:
    return b64decode(secret.removeprefix("whsec_"))


USER_AGENT: Final = "Guichet-Webhooks/1.0"
#: The headers that are others in each attempt.
SIGNATURE: Final = "X-Service-Signature"
TIMESTAMP: Final = "webhook-timestamp"
STANDARD_SIGNATURE: Final = "webhook-signature"


class Attempt(Record, frozen=True):
    """`response_code` is the status the merchant's server returned; None when none came."""

    delivered: bool
    response_code: int | None
    #: The server used up all the time that it has, even if its status came.
    timed_out: bool = False
    #: Nothing was sent, because of a fault on our side: the attempt does not count.
    own_fault: bool = False
    #: As `own_fault`, because this process stops.
    stopped: bool = False
    #: Why it was not delivered.
    error: DeliveryError | None = None
    #: What came back, as far as it did.
    answer: bytes = b""


async def send(
    http_client: HttpClient,
    delivery: Delivery,
    body: bytes,
    secrets: Sequence[str],
    now: Instant,
    timeout: float = ANSWER_TIMEOUT,
) -> Attempt:
    """Signs `body` with `secrets` (see `signed_headers`) as of `now` and posts once. Raises no HttpClientError.

    The status acknowledges, not the body: a 2xx that came in time counts even if its body breaks off or never ends,
    because that receiver has taken the event and would only see it twice.
    """
    began = time.perf_counter()
    attempt = await _post(http_client, delivery, body, secrets, now, timeout)
    tracing.webhook_attempt(delivery, body, attempt.response_code, attempt.delivered, time.perf_counter() - began)
    return attempt


async def _post(
    http_client: HttpClient, delivery: Delivery, body: bytes, secrets: Sequence[str], now: Instant, timeout: float
) -> Attempt:
    headers = signed_headers(delivery, body, secrets, now // SECOND)
    try:
        response = await http_client.request("POST", delivery.url, headers=headers, body=body, timeout=timeout)
    except NotSent as error:
        is_own_fault = await http_client.is_own_fault(error, delivery.url)
        return Attempt(
            False,
            None,
            timed_out=error.timed_out and not is_own_fault,
            own_fault=is_own_fault,
            stopped=error.stopped,
            error="own_fault" if is_own_fault else failure_kind(error),
        )
    except Lost as error:
        if error.status is None:
            return Attempt(False, None, timed_out=error.timed_out, error=failure_kind(error))
        return _answered(error.status, timed_out=error.timed_out)
    return _answered(response.status, response.body)


def _answered(status: int, body: bytes = b"", *, timed_out: bool = False) -> Attempt:
    delivered = 200 <= status < 300
    return Attempt(delivered, status, timed_out=timed_out, error=None if delivered else "bad_status", answer=body)


def signed_headers(delivery: Delivery, body: bytes, secrets: Sequence[str], timestamp: int) -> dict[str, str]:
    """The headers of an attempt at `timestamp` (Unix seconds) with this body.

    `secrets`: whole `whsec_…` strings, the one in force first. One before it, which a merchant lets overlap, signs by
    the standard only.
    """
    standard = [sign_by_the_standard(secret, delivery.reference, timestamp, body) for secret in secrets]
    return {
        **headers_of(delivery),
        SIGNATURE: sign(secrets[0], timestamp, body),
        TIMESTAMP: str(timestamp),
        STANDARD_SIGNATURE: " ".join(standard),
    }


def headers_of(delivery: Delivery) -> dict[str, str]:
    """Those that are the same in each attempt: all but the time and the signatures."""
    return {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "X-Service-Event": delivery.event,
        "X-Service-Delivery": delivery.reference,
        "webhook-id": delivery.reference,
    }
