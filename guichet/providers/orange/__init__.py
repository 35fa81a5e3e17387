"""Orange Money Web Payment (docs/providers/orange.md)."""

from typing import Final

from guichet.providers.orange.provider import Orange, is_sandbox, operators
from guichet.providers.shared.account_findings import AccountFinding
from guichet.providers.shared.provider_type import ProviderType

TYPE: Final = ProviderType(
    build=Orange,
    required=("country", "client_id", "client_secret", "merchant_key"),
    optional=("oauth_path", "currency", "merchant_name", "return_url"),
    operators=operators,
    callbacks="each call",
    sandbox=lambda settings: AccountFinding.SANDBOX_COUNTRY() if is_sandbox(settings) else None,
    statement={"reference": ("order_id", "txnid", "pay_token")},
)
