"""pawaPay Merchant API v2 (docs/providers/pawapay.md)."""

from typing import Final

from guichet.providers.pawapay.provider import OPERATORS, PawaPay
from guichet.providers.shared.account_findings import AccountFinding
from guichet.providers.shared.provider_type import ProviderType

TYPE: Final = ProviderType(
    build=PawaPay,
    required=("token",),
    optional=("signing_key", "signing_key_id", "signature_encoding", "callback_public_key", "return_url"),
    without={
        "signing_key": AccountFinding.REQUESTS_UNSIGNED,
        "callback_public_key": AccountFinding.CALLBACKS_UNCHECKED,
    },
    operators=lambda _: OPERATORS,
    sandbox_hosts=("api.sandbox.pawapay.io",),
    statement={
        "reference": ("depositId", "refundId", "payoutId", "clientReferenceId", "providerTransactionId"),
        "date": ("created",),
    },
)
