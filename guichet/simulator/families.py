"""The families there are. A new one is a module and a line here."""

from typing import Final

from guichet.simulator.coris import Coris
from guichet.simulator.desk import Desk
from guichet.simulator.family import Family
from guichet.simulator.feexpay import FeexPay
from guichet.simulator.mtn import Mtn
from guichet.simulator.orange import Orange
from guichet.simulator.pawapay import PawaPay
from guichet.simulator.sonatel import Sonatel
from guichet.simulator.stripe import Stripe
from guichet.simulator.wave import Wave

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
