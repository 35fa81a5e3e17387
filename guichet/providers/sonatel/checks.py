"""What Sonatel tells about an account (docs/providers/sonatel.md, "Callbacks", "Other calls")."""

from collections.abc import Awaitable, Callable, Mapping
from uuid import uuid4

from guichet.domain.messages import verbatim
from guichet.providers.shared.account_checks import (
    AccountSetup,
    Finding,
    answered,
    callback_address_is_ours,
    no_call,
    wrong,
)
from guichet.providers.shared.account_findings import AccountFinding, AccountSubject
from guichet.providers.shared.client import ProviderResponse

Get = Callable[[str, Mapping[str, str] | None], Awaitable[ProviderResponse]]
#: Where the callback address of a merchant code is registered and read.
CALLBACK_PATH = "/api/notification/v1/merchantcallback"


async def check(setup: AccountSetup, get: Get, registered: ProviderResponse) -> list[Finding]:
    """`registered`: the answer about our callback address."""
    nobody = {"reference": str(uuid4())}
    return [
        answered(
            AccountSubject.CREDENTIALS(),
            await get("/api/account/v1/publicKeys", None),
            AccountFinding.CLIENT_ACCEPTED(),
        ),
        # Payments are settled from this list, and not every contract includes it.
        answered(
            AccountSubject.TRANSACTIONS(),
            await get("/api/eWallet/v1/transactions", nobody),
            AccountFinding.TRANSACTIONS_LISTED(),
        ),
        _registered(setup, registered),
        no_call(AccountSubject.RETAILER(), AccountFinding.ONLY_BY_CASH_IN()),
        no_call(AccountSubject.MERCHANT_CODE(), AccountFinding.ONLY_BY_PAYMENT()),
    ]


def _registered(setup: AccountSetup, result: ProviderResponse) -> Finding:
    subject = AccountSubject.REGISTERED_CALLBACK()
    if result.status == 404:
        return wrong(subject, AccountFinding.NOT_REGISTERED())
    if not result.ok:
        return wrong(subject, verbatim(result.raw))
    return callback_address_is_ours(subject, callback_url(result), setup)


def callback_url(response: ProviderResponse) -> object:
    """The address in an object, or in a list of one."""
    value = response.value()
    row = value[0] if isinstance(value, list) and value else value
    return row.get("callbackUrl") if isinstance(row, dict) else None
