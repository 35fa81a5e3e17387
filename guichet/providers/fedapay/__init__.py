"""FedaPay (docs/providers/fedapay.md)."""

from typing import Final

from guichet.providers.fedapay.networks import served
from guichet.providers.fedapay.provider import FedaPay, is_sandbox_key
from guichet.providers.shared.account_findings import AccountFinding
from guichet.providers.shared.provider_type import ProviderType

TYPE: Final = ProviderType(
    build=FedaPay,
    required=("secret_key",),
    optional=("webhook_secret", "page_operators", "mtn_payout_mode", "sandbox_mode", "phone_format"),
    without={"webhook_secret": AccountFinding.CALLBACKS_UNCHECKED},
    operators=served,
    sandbox_hosts=("sandbox-api.fedapay.com", "dev-api.fedapay.com"),
    sandbox=lambda settings: AccountFinding.SANDBOX_KEY() if is_sandbox_key(settings) else None,
    tells_sandbox=lambda settings: "secret_key" in settings,
    statement={"reference": ("merchant_reference", "id"), "date": ("approved_at", "sent_at", "created_at")},
)
