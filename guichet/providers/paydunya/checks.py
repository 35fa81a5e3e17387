"""What PayDunya tells about an account (docs/providers/paydunya.md, "Addresses and credentials")."""

from guichet.domain.messages import verbatim
from guichet.providers.paydunya.responses import code_of
from guichet.providers.shared.account_checks import AccountSetup, Finding, no_call, ok, wrong
from guichet.providers.shared.account_findings import AccountFinding, AccountSubject
from guichet.providers.shared.client import ProviderResponse


def check(setup: AccountSetup, created: ProviderResponse) -> list[Finding]:
    """`created`: the answer to an invoice."""
    subject = AccountSubject.CREDENTIALS()
    is_made = code_of(created.ok_object()) == "00"
    by_payout = AccountFinding.TRIED_BY_PAYOUT(address=f"{setup.callback_addresses[1]}/…")
    return [
        ok(subject, AccountFinding.INVOICE_MADE()) if is_made else wrong(subject, verbatim(created.raw)),
        no_call(AccountSubject.REGISTERED_CALLBACK(), by_payout),
        no_call(AccountSubject.NETWORKS(), AccountFinding.SERVICE_OFF()),
        no_call(AccountSubject.LIMITS(), AccountFinding.LIMITS_OF_PAYDUNYA()),
    ]
