"""What pawaPay tells about an account (docs/providers/pawapay.md, "Other calls", "Signatures")."""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import uuid4

from guichet.domain.messages import verbatim
from guichet.providers.pawapay.responses import failure_code
from guichet.providers.shared.account_checks import (
    AccountSetup,
    Finding,
    callback_address_is_ours,
    no_call,
    ok,
    unchecked,
    wrong,
)
from guichet.providers.shared.account_findings import AccountFinding, AccountSubject
from guichet.providers.shared.client import ProviderClient
from guichet.providers.shared.fields import value_at

_SIGNATURE_ERROR: Final = "HTTP_SIGNATURE_ERROR"
_DEPOSIT: Final = "DEPOSIT"


async def check(setup: AccountSetup, http: ProviderClient, codes: Mapping[str, str]) -> list[Finding]:
    """`codes`: pawaPay's name of each of our operators."""
    return [
        *await _configuration(setup, http, codes),
        await _signature(setup, http),
        await _callback_key(setup, http),
    ]


async def _configuration(setup: AccountSetup, http: ProviderClient, codes: Mapping[str, str]) -> list[Finding]:
    """Enabled operators with their limits, callback addresses, and whether requests must be signed."""
    result = await http.get("/v2/active-conf")
    if not result.ok:
        return [wrong(AccountSubject.CONFIGURATION(), verbatim(result.raw))]
    body = result.ok_object()
    signed_only = value_at(body, "signatureConfiguration", "signedRequestsOnly") is True
    unsigned = signed_only and not setup.account.settings.get("signing_key")
    findings = [wrong(AccountSubject.SIGNATURES(), AccountFinding.SIGNED_ONLY())] if unsigned else []
    enabled = dict(_operations(body))
    findings += [_operator(operator, codes.get(operator, ""), enabled) for operator in setup.operators]
    addresses = {terms["callbackUrl"] for terms in enabled.values() if terms.get("callbackUrl")}
    registered = AccountSubject.REGISTERED_CALLBACK()
    if not addresses:
        return [*findings, no_call(registered, AccountFinding.IN_DASHBOARD(address=setup.callback_addresses[0]))]
    return [*findings, *(callback_address_is_ours(registered, address, setup) for address in sorted(addresses))]


def _operations(body: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], Mapping[str, Any]]]:
    """((provider, operation), terms) of everything that is enabled."""
    for country in _list(body.get("countries")):
        for provider in _list(value_at(country, "providers")):
            for currency in _list(value_at(provider, "currencies")):
                for operation, terms in _object(value_at(currency, "operationTypes")).items():
                    yield (str(value_at(provider, "provider")), str(operation)), _object(terms)


def _operator(operator: str, code: str, enabled: Mapping[tuple[str, str], Mapping[str, Any]]) -> Finding:
    terms = enabled.get((code, _DEPOSIT))
    if terms is None:
        return wrong(verbatim(operator), AccountFinding.NOT_ENABLED(code=code))
    limits = {"least": _limit(terms, "min"), "most": _limit(terms, "max")}
    facts = {"code": code, **limits, "state": str(terms.get("status"))}
    others = [name for provider, name in enabled if provider == code and name != _DEPOSIT]
    alone = AccountFinding.ENABLED_ALONE(**facts)
    return ok(verbatim(operator), AccountFinding.ENABLED(**facts, others=", ".join(others)) if others else alone)


def _limit(terms: Mapping[str, Any], which: str) -> str:
    """`min` or `max`, under its present name or the one in older text of pawaPay's."""
    return str(terms.get(f"{which}TransactionLimit") or terms.get(f"{which}Amount"))


async def _signature(setup: AccountSetup, http: ProviderClient) -> Finding:
    """A deposit that names nobody who pays is refused for its body, but only after its signature was accepted."""
    subject = AccountSubject.SIGNED_REQUEST()
    if not setup.account.settings.get("signing_key"):
        return unchecked(subject, AccountFinding.REQUESTS_UNSIGNED())
    result = await http.post("/v2/deposits", {"depositId": str(uuid4())})
    refused = result.status in (200, 400)
    code = failure_code(result.object() or {})
    if refused and code not in ("", _SIGNATURE_ERROR):
        return ok(subject, AccountFinding.SIGNATURE_ACCEPTED())
    return wrong(subject, verbatim(result.raw))


async def _callback_key(setup: AccountSetup, http: ProviderClient) -> Finding:
    """Whether `callback_public_key` is a key that pawaPay signs with now."""
    subject, our_key = AccountSubject.CALLBACK_KEY(), setup.account.settings.get("callback_public_key")
    result = await http.get("/v2/public-key/http")
    keys = result.value() if result.ok else None
    if not isinstance(keys, list):
        return wrong(subject, verbatim(result.raw))
    if not our_key:
        return unchecked(subject, AccountFinding.CALLBACK_KEY_UNSET())
    if _key_text(our_key) in {_key_text(str(value_at(key, "key"))) for key in keys}:
        return ok(subject, AccountFinding.CALLBACK_KEY_KNOWN())
    return wrong(subject, AccountFinding.CALLBACK_KEY_UNKNOWN())


def _key_text(pem: str) -> str:
    """The base64 of a key, however its lines are broken."""
    lines = pem.replace("\\n", "\n").split("\n")
    return "".join(line.strip() for line in lines if not line.startswith("-----"))


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
