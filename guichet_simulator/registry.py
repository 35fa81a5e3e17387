"""The families there are. A new one is a module and a line here."""

from typing import Final

from guichet_simulator.base import Family
from guichet_simulator.context import Desk
from guichet_simulator.coris import Coris
from guichet_simulator.feexpay import FeexPay
from guichet_simulator.mtn import Mtn
from guichet_simulator.orange import Orange
from guichet_simulator.pawapay import PawaPay
from guichet_simulator.sonatel import Sonatel
from guichet_simulator.stripe import Stripe
from guichet_simulator.wave import Wave

_FAMILIES: Final[tuple[type[Family], ...]] = (FeexPay, Mtn, Wave, PawaPay, Orange, Sonatel, Stripe, Coris)

#: What signs or is hashed, by family, until a dashboard says otherwise. Worth nothing anywhere else.
SECRETS: Final = {
    "wave": "wave_sn_WHS_simulator",
    "sonatel": "sonatel-simulator",
    "stripe": "whsec_simulator",
    "coris": "coris-simulator",
}


def families(desk: Desk) -> list[Family]:
    return [family(desk) for family in _FAMILIES]
