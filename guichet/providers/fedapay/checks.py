"""What FedaPay tells about an account (docs/providers/fedapay.md, "Other calls")."""

from collections.abc import Mapping

from guichet.domain.messages import verbatim
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
from guichet.providers.shared.listings import rows_of


async def check(setup: AccountSetup, http: ProviderClient, modes: Mapping[str, str | None]) -> list[Finding]:
    """`modes`: FedaPay's word for each operator whose routes lead to the account."""
    return [
        await _networks(http, modes),
        await _webhook(setup, http),
        no_call(AccountSubject.LIMITS(), AccountFinding.LIMITS_OF_FEDAPAY()),
    ]


async def _networks(http: ProviderClient, modes: Mapping[str, str | None]) -> Finding:
    """The list of currencies names the networks that the account may use; that one is missing there proves nothing."""
    subject, result = AccountSubject.NETWORKS(), await http.get("/v1/currencies")
    listed = result.ok_object().get("v1/currencies")
    if not isinstance(listed, list):
        return wrong(subject, verbatim(result.raw))
    listed_modes = {str(mode) for row in rows_of(listed) for mode in row.get("modes") or ()}
    if missing := sorted({mode for mode in modes.values() if mode and mode not in listed_modes}):
        return unchecked(subject, AccountFinding.MODES_NOT_LISTED(modes=", ".join(missing)))
    return ok(subject, verbatim(", ".join(sorted(listed_modes))))


async def _webhook(setup: AccountSetup, http: ProviderClient) -> Finding:
    subject, address = AccountSubject.REGISTERED_CALLBACK(), setup.callback_addresses[0]
    result = await http.get("/v1/webhooks")
    listed = result.ok_object().get("v1/webhooks")
    if not isinstance(listed, list):
        return no_call(subject, AccountFinding.IN_DASHBOARD(address=address))
    urls = [str(row.get("url")) for row in rows_of(listed) if row.get("enabled")]
    registered = next((url for url in urls if url.rstrip("/") in setup.callback_addresses), None)
    return callback_address_is_ours(subject, registered or next(iter(urls), None), setup)
