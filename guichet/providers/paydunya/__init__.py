"""PayDunya (docs/providers/paydunya.md)."""

from typing import Final

from guichet.providers.paydunya.networks import NETWORKS
from guichet.providers.paydunya.provider import build, is_test
from guichet.providers.shared.account_findings import AccountFinding
from guichet.providers.shared.provider_type import ProviderType

TYPE: Final = ProviderType(
    build=build,
    required=("master_key", "private_key", "token", "store", "email"),
    optional=("balances", "celtiis_phone_field", "orange_sn_page", "return_url"),
    operators=lambda _: NETWORKS,
    callbacks="each call",
    sandbox=lambda settings: AccountFinding.SANDBOX_PRIVATE_KEY() if is_test(settings.get("private_key", "")) else None,
    tells_sandbox=lambda settings: "private_key" in settings,
)
