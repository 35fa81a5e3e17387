"""MTN MoMo Open API (docs/providers/mtn.md)."""

from typing import Final

from guichet.providers.mtn.provider import Mtn, operators
from guichet.providers.shared.account_findings import AccountFinding
from guichet.providers.shared.provider_type import ProviderType

TYPE: Final = ProviderType(
    build=Mtn,
    required=("target_env", "subscription_key", "api_user", "api_key"),
    optional=("disbursement_subscription_key", "disbursement_api_user", "disbursement_api_key", "refund_via"),
    without={"disbursement_subscription_key": AccountFinding.CANNOT_REFUND},
    operators=operators,
    callbacks="each call",
    sandbox_hosts=("sandbox.momodeveloper.mtn.com",),
    sandbox=lambda settings: AccountFinding.SANDBOX_TARGET() if settings.get("target_env") == "sandbox" else None,
    statement={"reference": ("externalId", "financialTransactionId", "referenceId", "X-Reference-Id")},
)
