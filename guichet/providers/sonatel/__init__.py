"""Orange Money Sénégal by Sonatel (docs/providers/sonatel.md)."""

from typing import Final

from guichet.providers.shared.account_findings import AccountFinding
from guichet.providers.shared.provider_type import ProviderType
from guichet.providers.sonatel.provider import OPERATOR, Sonatel

TYPE: Final = ProviderType(
    build=Sonatel,
    required=("client_id", "client_secret", "merchant_code"),
    optional=("retailer_msisdn", "retailer_pin", "webhook_secret"),
    without={
        "webhook_secret": AccountFinding.CALLBACKS_UNCHECKED,
        "retailer_msisdn": AccountFinding.CANNOT_REFUND,
        "retailer_pin": AccountFinding.CANNOT_REFUND,
    },
    operators=lambda _: (OPERATOR,),
    sandbox_hosts=("api.sandbox.orange-sonatel.com",),
    statement={"reference": ("transactionId", "requestId")},
)
