"""FeexPay v2 (docs/providers/feexpay.md)."""

from typing import Final

from guichet.providers.feexpay.provider import FeexPay
from guichet.providers.shared.provider_type import ProviderType

TYPE: Final = ProviderType(
    build=FeexPay,
    required=("api_key", "shop"),
    statement={"reference": ("callback_info", "financial_transaction_id", "custom_id")},
)
