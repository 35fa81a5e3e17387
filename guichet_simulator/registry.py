"""The simulated providers. A new one is a folder and its name here."""

from typing import Final

from guichet_simulator.base import SimulatedProvider
from guichet_simulator.context import SimulatorContext
from guichet_simulator.coris.provider import Coris
from guichet_simulator.feexpay.provider import FeexPay
from guichet_simulator.mtn.provider import Mtn, MtnNewPlatform
from guichet_simulator.orange.provider import Orange
from guichet_simulator.pawapay.provider import PawaPay
from guichet_simulator.sonatel.provider import Sonatel
from guichet_simulator.stripe.provider import Stripe
from guichet_simulator.wave.provider import Wave

PROVIDERS: Final[tuple[type[SimulatedProvider], ...]] = (
    FeexPay, Mtn, MtnNewPlatform, Wave, PawaPay, Orange, Sonatel, Stripe, Coris,
)  # fmt: skip

SECRETS: Final = {provider.name: provider.signing_key for provider in PROVIDERS if provider.signing_key}


def build_providers(ctx: SimulatorContext) -> list[SimulatedProvider]:
    return [provider(ctx) for provider in PROVIDERS]
