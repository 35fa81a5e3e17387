"""What Stripe tells about a key (docs/providers/stripe.md, "Other calls")."""

from typing import Any, Final

from guichet.domain.messages import Message, verbatim
from guichet.providers.shared.account_checks import AccountSetup, Finding, no_call, ok, unchecked, wrong
from guichet.providers.shared.account_findings import AccountFinding, AccountSubject
from guichet.providers.shared.client import ProviderClient, ProviderResponse

#: Without these events a payment is settled later, by polling.
_EVENTS: Final = ("checkout.session.completed", "checkout.session.expired")


async def check(setup: AccountSetup, http: ProviderClient) -> list[Finding]:
    return [
        _account(await http.get("/v1/account")),
        _endpoints(setup, await http.get("/v1/webhook_endpoints", {"limit": "100"})),
        no_call(AccountSubject.LIMITS(), AccountFinding.LIMITS_OF_STRIPE()),
    ]


def _account(result: ProviderResponse) -> Finding:
    subject = AccountSubject.CHARGES()
    if not result.ok:
        return _not_permitted(subject, result)
    account = result.ok_object()
    about = {"country": str(account.get("country")), "currency": str(account.get("default_currency")).upper()}
    if account.get("charges_enabled") is True:
        return ok(subject, AccountFinding.CHARGES_ENABLED(**about))
    return wrong(subject, AccountFinding.CHARGES_DISABLED(**about))


def _endpoints(setup: AccountSetup, result: ProviderResponse) -> Finding:
    subject = AccountSubject.REGISTERED_CALLBACK()
    if not result.ok:
        return _not_permitted(subject, result)
    rows = result.ok_object().get("data")
    listed: list[dict[str, Any]] = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    endpoints = [row for row in listed if str(row.get("url")).rstrip("/") in setup.callback_addresses]
    if not endpoints:
        return wrong(subject, AccountFinding.NO_ENDPOINT(address=setup.callback_addresses[0]))
    address = str(endpoints[0].get("url"))
    if all(row.get("status") == "disabled" for row in endpoints):
        return wrong(subject, AccountFinding.ENDPOINT_DISABLED(address=address))
    events = {event for row in endpoints for event in row.get("enabled_events") or ()}
    missing = [event for event in _EVENTS if event not in events and "*" not in events]
    if missing:
        return wrong(subject, AccountFinding.EVENTS_MISSING(address=address, events=", ".join(missing)))
    return ok(subject, AccountFinding.ENDPOINT_KNOWN(address=address))


def _not_permitted(subject: Message, result: ProviderResponse) -> Finding:
    """A restricted key may do what we need and not be allowed to read this."""
    if result.status == 403:
        return unchecked(subject, AccountFinding.NOT_PERMITTED())
    return wrong(subject, verbatim(result.raw))
