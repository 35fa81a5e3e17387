"""Stripe Checkout (docs/providers/stripe.md)."""

from typing import Final

from guichet.providers.base import CARDS
from guichet.providers.shared.account_findings import AccountFinding
from guichet.providers.shared.provider_type import ProviderType
from guichet.providers.stripe.provider import Stripe, is_test_key

TYPE: Final = ProviderType(
    build=Stripe,
    required=("secret_key",),
    optional=("webhook_secret", "api_version", "return_url"),
    without={"webhook_secret": AccountFinding.CALLBACKS_UNCHECKED},
    operators=lambda _: CARDS,
    sandbox=lambda settings: AccountFinding.SANDBOX_KEY() if is_test_key(settings.get("secret_key", "")) else None,
    tells_sandbox=lambda settings: "secret_key" in settings,
    statement={
        "reference": ("client_reference_id", "payment_intent", "id", "source"),
        "status": ("payment_status",),
        "date": ("created", "created (utc)"),
    },
)
