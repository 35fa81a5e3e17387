"""What Wave tells about a key (docs/providers/wave.md, "Addresses and credentials")."""

from typing import Final

from guichet.domain.messages import verbatim
from guichet.providers.base import Unknown
from guichet.providers.capabilities import MerchantNames
from guichet.providers.shared.account_checks import AccountSetup, Finding, answered, no_call, ok, wrong
from guichet.providers.shared.account_findings import AccountFinding, AccountSubject
from guichet.providers.shared.client import ProviderClient, ProviderResponse

#: Parts of Wave's secrets by which each shows what it is.
_KINDS: Final = {"webhook_secret": "_WHS_", "signing_secret": "_AKS_"}


async def check(setup: AccountSetup, http: ProviderClient, merchants: MerchantNames | None) -> list[Finding]:
    """`merchants`: None for an account that is no aggregator's."""
    findings = [
        *_secrets_in_their_places(setup),
        answered(AccountSubject.KEY_AND_SIGNATURE(), await http.get("/v1/balance"), AccountFinding.SIGNED_GET()),
        # A session without any field cannot be created; the key, its scope and the signature are looked at before.
        _session_refused_for_its_body(await http.post("/v1/checkout/sessions", {})),
    ]
    if merchants is not None:
        listed = await merchants.ids_by_name()
        subject = AccountSubject.AGGREGATED_MERCHANTS()
        findings.append(
            wrong(subject, verbatim(listed.raw))
            if isinstance(listed, Unknown)
            else ok(subject, AccountFinding.MERCHANTS_AT_WAVE(count=len(listed)))
        )
    registered = AccountFinding.IN_PORTAL(address=setup.callback_addresses[0])
    return [*findings, no_call(AccountSubject.REGISTERED_CALLBACK(), registered)]


def _secrets_in_their_places(setup: AccountSetup) -> list[Finding]:
    settings, country = setup.account.settings, setup.account.settings["country"].lower()
    findings = []
    key_country = settings["api_key"].removeprefix("wave_").partition("_")[0]
    if key_country in ("ci", "sn", "bf") and key_country != country:
        differs = AccountFinding.KEY_OF_COUNTRY(other=key_country, country=country)
        findings.append(wrong(AccountSubject.COUNTRY(), differs))
    for name, kind in _KINDS.items():
        other = next((part for part in _KINDS.values() if part != kind and part in settings.get(name, "")), None)
        if other is not None:
            exchanged = AccountFinding.SECRETS_EXCHANGED(kind=f"wave_{country}{other}")
            findings.append(wrong(verbatim(name), exchanged))
    return findings


def _session_refused_for_its_body(result: ProviderResponse) -> Finding:
    subject = AccountSubject.CHECKOUT_SCOPE()
    if result.status in (400, 422):
        return ok(subject, AccountFinding.SIGNED_POST())
    return wrong(subject, verbatim(result.raw))
