"""The API families there are. A new one is a module here, a module in the simulator, and a line in each table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from guichet.clock import Clock
from guichet.http_client import HttpClient
from guichet.providers import coris, feexpay, mtn, orange, pawapay, sonatel, stripe, wave
from guichet.providers.base import Provider
from guichet.providers.client import ProviderAccount


@dataclass(frozen=True, slots=True)
class Family:
    """How to build a connector, and the settings its connections must and may have.

    `build` raises ValueError for settings that contradict each other or lead nowhere.
    """

    build: Callable[[ProviderAccount, HttpClient, Clock], Provider]
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()


FAMILIES: Final = {
    "mtn": Family(mtn.Mtn, mtn.REQUIRED, mtn.OPTIONAL),
    "wave": Family(wave.Wave, wave.REQUIRED, wave.OPTIONAL),
    "pawapay": Family(pawapay.PawaPay, pawapay.REQUIRED, pawapay.OPTIONAL),
    "feexpay": Family(feexpay.FeexPay, feexpay.REQUIRED),
    "orange": Family(orange.Orange, orange.REQUIRED, orange.OPTIONAL),
    "sonatel": Family(sonatel.Sonatel, sonatel.REQUIRED, sonatel.OPTIONAL),
    "stripe": Family(stripe.Stripe, stripe.REQUIRED, stripe.OPTIONAL),
    "coris": Family(coris.Coris, coris.REQUIRED, coris.OPTIONAL),
}
