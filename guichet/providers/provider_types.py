"""The types of providers there are. A new one is a module here, a module in the simulator, and a line in each table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from guichet.clock import Clock
from guichet.http_client import HttpClient
from guichet.providers import coris, feexpay, mtn, orange, pawapay, sonatel, stripe, wave
from guichet.providers.base import Provider
from guichet.providers.client import ProviderAccount


@dataclass(frozen=True, slots=True)
class ProviderType:
    """How to build the provider of an account, and the settings that an account must and may have.

    `build` raises ValueError for settings that contradict each other or cannot work.
    """

    build: Callable[[ProviderAccount, HttpClient, Clock], Provider]
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()


PROVIDER_TYPES: Final = {
    "mtn": ProviderType(mtn.Mtn, mtn.REQUIRED, mtn.OPTIONAL),
    "wave": ProviderType(wave.Wave, wave.REQUIRED, wave.OPTIONAL),
    "pawapay": ProviderType(pawapay.PawaPay, pawapay.REQUIRED, pawapay.OPTIONAL),
    "feexpay": ProviderType(feexpay.FeexPay, feexpay.REQUIRED),
    "orange": ProviderType(orange.Orange, orange.REQUIRED, orange.OPTIONAL),
    "sonatel": ProviderType(sonatel.Sonatel, sonatel.REQUIRED, sonatel.OPTIONAL),
    "stripe": ProviderType(stripe.Stripe, stripe.REQUIRED, stripe.OPTIONAL),
    "coris": ProviderType(coris.Coris, coris.REQUIRED, coris.OPTIONAL),
}
