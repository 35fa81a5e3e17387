"""How responses become results: the rules that all providers share (docs/providers/README.md).

A request whose response was lost is sent again under the same reference; what this second request returns says
something about the first. `as_status`, `as_refund_status`: the provider knows the reference and answers as before.
`as_repeated`, `as_repeated_refund`: it did not know the reference, and the first request may still be on its way.

    second request          as_status   as_refund_status   as_repeated   as_repeated_refund   once `never_arrived`
    Accepted, Succeeded,
    Unknown                 itself      itself             itself        itself               itself
    Refused                 itself      itself             Unknown       NotFound             itself
    NotProcessed            Unknown     Unknown            Unknown       NotFound             Unknown
    FloatEmpty              –           Unknown            –             NotFound             itself
    AmbiguousRefusal        –           Unknown            –             NotFound             itself
    AlreadyRefunded         –           itself             –             NotFound             itself
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeVar

from guichet.domain.failures import RefusalReason
from guichet.domain.messages import Answer
from guichet.providers.base import (
    Accepted,
    AlreadyRefunded,
    AmbiguousRefusal,
    FloatEmpty,
    InitiationResult,
    NotFound,
    NotProcessed,
    RefundInitiationResult,
    RefundRequest,
    RefundStatusResult,
    Refused,
    StatusResult,
    Succeeded,
    Unknown,
)
from guichet.providers.shared.client import ProviderResponse

T = TypeVar("T")


def by_code(codes: Mapping[RefusalReason, str]) -> dict[str, RefusalReason]:
    """The reason of each code; the codes of a reason are separated by spaces."""
    return {code: reason for reason, listed in codes.items() for code in listed.split()}


def find_reason(meanings: Mapping[str, RefusalReason], text: object) -> RefusalReason:
    """The reason of the first key that `text` contains, for providers that word their refusals freely."""
    upper = str(text).upper()
    return next((reason for part, reason in meanings.items() if part in upper), "refused")


def classify_http_error(response: ProviderResponse) -> NotProcessed | Unknown | None:
    """What a status of an initiation, or a lost response, means with every provider; None when the provider's own code
    must decide.

    401 and 403 are faults of our configuration, 429 was not looked at, 5xx and broken responses are unknown.
    """
    if response.lost:
        return response.lost
    if response.status in (401, 403):
        return NotProcessed("configuration", response.raw)
    if response.status == 429:
        return NotProcessed("operator_unavailable", response.raw)
    if response.status >= 500 or not response.complete:
        return Unknown(response.raw)
    return None


def mark_ambiguous(result: T, code: str, ambiguous: Collection[str]) -> T | AmbiguousRefusal:
    """The result of a refund; AmbiguousRefusal when it was refused by a `code` that may mean our own balance too.
    `ambiguous`: the codes of which the provider's page says so."""
    if isinstance(result, Refused) and code in ambiguous:
        return AmbiguousRefusal(result.reason, result.raw, code=code)
    return result


def as_status(result: InitiationResult) -> StatusResult:
    return Unknown(result.raw) if isinstance(result, NotProcessed) else result


def as_refund_status(result: RefundInitiationResult, *, is_first: bool = False) -> RefundStatusResult:
    """`is_first`: an ambiguous refusal is the answer to the first request too, so it stays as it is."""
    if isinstance(result, AmbiguousRefusal) and is_first:
        return result
    return Unknown(result.raw) if isinstance(result, NotProcessed | FloatEmpty | AmbiguousRefusal) else result


def as_repeated(result: InitiationResult) -> StatusResult:
    return Unknown(result.raw) if isinstance(result, NotProcessed | Refused) else result


def as_repeated_refund(result: RefundInitiationResult, request: RefundRequest) -> RefundStatusResult:
    if isinstance(result, Accepted | Succeeded | Unknown):
        return result
    if not request.never_arrived:
        return NotFound(result.raw)
    return Unknown(result.raw) if isinstance(result, NotProcessed) else result


_BY_WEIGHT: Final = (Succeeded, AlreadyRefunded, Accepted, Unknown, NotFound, FloatEmpty, AmbiguousRefusal, Refused)
AnyStatus = TypeVar("AnyStatus", StatusResult, RefundStatusResult)


def most_conclusive(results: Iterable[AnyStatus]) -> AnyStatus | None:
    """One result for several transactions under one reference: a success counts most, a refusal least."""
    return min(results, key=lambda result: _BY_WEIGHT.index(type(result)), default=None)


def probe_result(result: ProviderResponse) -> Answer:
    """What `probe` returns for a call that answers 2xx when our credentials are right."""
    return "ok" if result.ok else result.raw
