"""What Wave tells about a key (docs/providers/wave.md, "Addresses and credentials")."""

from typing import Final

from guichet.providers.account_checks import AccountSetup, Finding, answered, no_call, ok, wrong
from guichet.providers.base import Unknown
from guichet.providers.client import CallResult, ProviderResponse
from guichet.providers.wave_client import WaveClient
from guichet.providers.wave_merchants import WaveMerchants

#: Parts of Wave's secrets by which each shows what it is.
_KINDS: Final = {"webhook_secret": "_WHS_", "signing_secret": "_AKS_"}


async def check(setup: AccountSetup, client: WaveClient, merchants: WaveMerchants | None) -> list[Finding]:
    """`merchants`: None for an account that is no aggregator's."""
    found = [
        *_secrets_in_their_places(setup),
        answered("key and signature", await client.get("/v1/balance"), "a signed GET is accepted"),
        # A session without any field cannot be created; the key, its scope and the signature are looked at before.
        _session_refused_for_its_body(await client.post("/v1/checkout/sessions", {})),
    ]
    if merchants is not None:
        listed = await merchants.ids_by_name()
        subject = "aggregated merchants"
        found.append(
            wrong(subject, listed.raw) if isinstance(listed, Unknown) else ok(subject, f"{len(listed)} exist at Wave")
        )
    address = setup.callback_addresses[0]
    return [*found, no_call("registered callback", f"{address} must be a webhook of the Wave Business Portal")]


def _secrets_in_their_places(setup: AccountSetup) -> list[Finding]:
    settings, country = setup.account.settings, setup.account.settings["country"].lower()
    found = []
    key_country = settings["api_key"].removeprefix("wave_").partition("_")[0]
    if key_country in ("ci", "sn", "bf") and key_country != country:
        found.append(wrong("country", f"the key is of {key_country}, the account of {country}"))
    for name, kind in _KINDS.items():
        other = next((part for part in _KINDS.values() if part != kind and part in settings.get(name, "")), None)
        if other is not None:
            found.append(wrong(name, f"holds a secret of the kind wave_{country}{other}…: the two are exchanged"))
    return found


def _session_refused_for_its_body(result: CallResult) -> Finding:
    subject = "checkout scope"
    if isinstance(result, ProviderResponse) and result.status in (400, 422):
        return ok(subject, "a signed POST is accepted, and refused only for its empty body")
    return wrong(subject, result.raw)
