"""The types of providers there are. A new one is a module here, a module in the simulator, and a line in each table."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from guichet.clock import Clock
from guichet.http_client import HttpClient
from guichet.providers.base import CARDS, Provider
from guichet.providers.coris import provider as coris
from guichet.providers.feexpay import provider as feexpay
from guichet.providers.mtn import provider as mtn
from guichet.providers.orange import provider as orange
from guichet.providers.pawapay import provider as pawapay
from guichet.providers.shared.client import ProviderAccount
from guichet.providers.sonatel import provider as sonatel
from guichet.providers.stripe import provider as stripe
from guichet.providers.wave import provider as wave


@dataclass(frozen=True, slots=True)
class ProviderType:
    """How to build the provider of an account, the settings that an account must and may have, and what it serves.

    `build` raises ValueError for settings that contradict each other or cannot work. `operators`: those that an account
    with these settings can serve; None for any.
    """

    build: Callable[[ProviderAccount, HttpClient, Clock], Provider]
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    operators: Callable[[Mapping[str, str]], Collection[str] | None] = lambda _: None


PROVIDER_TYPES: Final = {
    "mtn": ProviderType(mtn.Mtn, mtn.REQUIRED, mtn.OPTIONAL, mtn.operators),
    "wave": ProviderType(wave.Wave, wave.REQUIRED, wave.OPTIONAL, wave.operators),
    "pawapay": ProviderType(pawapay.PawaPay, pawapay.REQUIRED, pawapay.OPTIONAL, lambda _: pawapay.OPERATORS),
    "feexpay": ProviderType(feexpay.FeexPay, feexpay.REQUIRED),
    "orange": ProviderType(orange.Orange, orange.REQUIRED, orange.OPTIONAL, orange.operators),
    "sonatel": ProviderType(sonatel.Sonatel, sonatel.REQUIRED, sonatel.OPTIONAL, lambda _: (sonatel.OPERATOR,)),
    "stripe": ProviderType(stripe.Stripe, stripe.REQUIRED, stripe.OPTIONAL, lambda _: CARDS),
    "coris": ProviderType(coris.Coris, coris.REQUIRED, coris.OPTIONAL, lambda _: (coris.OPERATOR,)),
}


def served_operators(account: ProviderAccount) -> Collection[str] | None:
    """The operators that the account can serve; None for any. A route of another one is a mistake in the file."""
    return PROVIDER_TYPES[account.provider].operators(account.settings)
