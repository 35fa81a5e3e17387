"""The simulated providers. A new one is a module and a line here."""

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

#: The secrets that sign callbacks or requests until a dashboard changes them. They are worth nothing anywhere else.
SECRETS: Final = {
    "wave": "wave_sn_WHS_simulator",
    "sonatel": "sonatel-simulator",
    "stripe": "whsec_simulator",
    "coris": "coris-simulator",
}


def build_providers(ctx: SimulatorContext) -> list[SimulatedProvider]:
    return [provider(ctx) for provider in PROVIDERS]
