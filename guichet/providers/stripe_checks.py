"""What Stripe tells about a key (docs/providers/stripe.md, "Other calls")."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from guichet.providers.account_checks import AccountSetup, Finding, no_call, ok, unchecked, wrong
from guichet.providers.client import CallResult, ProviderResponse

Get = Callable[[str], Awaitable[CallResult]]
#: Without these events a payment is settled later, by polling.
_EVENTS: Final = ("checkout.session.completed", "checkout.session.expired")


async def check(setup: AccountSetup, get: Get) -> list[Finding]:
    return [_account(await get("/v1/account")), _endpoints(setup, await get("/v1/webhook_endpoints?limit=100"))]


def _account(result: CallResult) -> Finding:
    subject = "charges"
    if not isinstance(result, ProviderResponse) or not result.ok:
        return _not_permitted(subject, result)
    account = result.ok_object()
    about = f"account of {account.get('country')} in {str(account.get('default_currency')).upper()}"
    enabled = account.get("charges_enabled") is True
    return ok(subject, f"enabled; {about}") if enabled else wrong(subject, f"charges_enabled is false; {about}")


def _endpoints(setup: AccountSetup, result: CallResult) -> Finding:
    subject = "registered callback"
    if not isinstance(result, ProviderResponse) or not result.ok:
        return _not_permitted(subject, result)
    rows = result.ok_object().get("data")
    listed: list[dict[str, Any]] = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    ours = [row for row in listed if str(row.get("url")).rstrip("/") in setup.callback_addresses]
    if not ours:
        return wrong(subject, f"Stripe has no webhook endpoint {setup.callback_addresses[0]}")
    if all(row.get("status") == "disabled" for row in ours):
        return wrong(subject, f"{ours[0].get('url')} is disabled at Stripe")
    events = {event for row in ours for event in row.get("enabled_events") or ()}
    missing = [event for event in _EVENTS if event not in events and "*" not in events]
    if missing:
        return wrong(subject, f"{ours[0].get('url')} is not sent {', '.join(missing)}")
    return ok(subject, f"Stripe has {ours[0].get('url')}")


def _not_permitted(subject: str, result: CallResult) -> Finding:
    """A restricted key may do what we need and not be allowed to read this."""
    if isinstance(result, ProviderResponse) and result.status == 403:
        return unchecked(subject, "the restricted key may not read it: look at Stripe's dashboard")
    return wrong(subject, result.raw)


def limits() -> Finding:
    return no_call("limits", "eight digits at most in the smallest unit")
