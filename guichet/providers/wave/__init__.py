"""Wave Business (docs/providers/wave.md)."""

from typing import Final

from guichet.providers.shared.account_findings import AccountFinding
from guichet.providers.shared.provider_type import ProviderType
from guichet.providers.wave.provider import Wave, operators

TYPE: Final = ProviderType(
    build=Wave,
    required=("country", "api_key"),
    optional=(
        "webhook_secret",
        "webhook_mode",
        "signing_secret",
        "aggregated_merchants",
        "aggregated_merchant_id",
        "return_url",
    ),
    without={
        "webhook_secret": AccountFinding.CALLBACKS_UNCHECKED,
        "signing_secret": AccountFinding.SIGNING_NEEDED,
    },
    operators=operators,
    statement={
        "reference": ("client_reference", "id", "transaction_id"),
        "amount": ("receive_amount",),
        "status": ("payment_status",),
        "date": ("when_completed", "timestamp"),
    },
)
