"""FedaPay's networks: its word ("mode") for each of our operators, and how a number is written there.

Source: docs/providers/fedapay.md, "Initiating a payment".
"""

from collections.abc import Mapping
from typing import Final

from guichet.domain.records import Record
from guichet.providers.base import CARDS
from guichet.providers.shared.choices import choice

CURRENCY: Final = "XOF"
#: FedaPay's numbers of currencies.
CURRENCY_IDS: Final = {"1": CURRENCY, "2": "GNF", "3": "EUR"}
_DIALLING_CODES: Final = {"bj": "229", "bf": "226", "ci": "225", "ml": "223", "sn": "221", "tg": "228"}


class Network(Record, frozen=True):
    """`push`: the customer types the PIN on request; otherwise on FedaPay's page. `payout`: the mode of payouts, which
    is also the balance they leave; None where there are none."""

    mode: str | None
    country: str
    payout: str | None
    push: bool = True


NETWORKS: Final[Mapping[str, Network]] = {
    "mtn": Network("mtn_open", "bj", "mtn_open"),
    "moov": Network("moov", "bj", "moov"),
    "celtiis_bj": Network("sbin", "bj", "sbin"),
    "togocom_tg": Network("togocel", "tg", "togocel"),
    "moov_tg": Network("moov_tg", "tg", "moov_tg"),
    "mtn_ci": Network("mtn_ci", "ci", "mtn_ci"),
    "free_sn": Network("free_sn", "sn", None),
    "moov_ci": Network("moov_ci", "ci", "moov_ci", push=False),
    "orange_ci": Network("orange_ci", "ci", "orange_ci", push=False),
    "wave_ci": Network("wave_ci", "ci", "wave_ci", push=False),
    "orange_sn": Network("orange_sn", "sn", "orange_sn", push=False),
    "wave_sn": Network("wave_sn", "sn", "wave_sn", push=False),
    "orange_ml": Network("orange_ml", "ml", None, push=False),
    "moov_bf": Network("moov_bf", "bf", "moov_bf", push=False),
    "orange_bf": Network("orange_bf", "bf", "orange-bf", push=False),
    "coris": Network(None, "bj", None, push=False),
    **{card: Network(None, "", None, push=False) for card in CARDS},
}
_PUSHED: Final = frozenset(operator for operator, network in NETWORKS.items() if network.push)
_ON_PAGE: Final = frozenset(NETWORKS) - _PUSHED


def served(settings: Mapping[str, str]) -> frozenset[str]:
    """The networks that ask for the PIN, and those of the page that the account has open: which these are is not
    published for sure."""
    return _PUSHED | frozenset((settings.get("page_operators") or "").split())


class Networks:
    def __init__(self, settings: Mapping[str, str]) -> None:
        """Raises ValueError for a setting that names something else than the page does."""
        self.served = served(settings)
        if unknown := sorted(self.served - _PUSHED - _ON_PAGE):
            raise ValueError(f"page_operators: {', '.join(unknown)} is none of {', '.join(sorted(_ON_PAGE))}")
        self._mtn_payout = choice(settings, "mtn_payout_mode", ("mtn_open", "mtn"))
        self._format = choice(settings, "phone_format", ("international", "national"))
        self._sandbox_mode = settings.get("sandbox_mode")

    def mode(self, operator: str) -> str | None:
        return self._sandbox_mode or NETWORKS[operator].mode

    def payout_mode(self, operator: str) -> str | None:
        network = NETWORKS.get(operator)
        if network is None or network.payout is None:
            return None
        return self._sandbox_mode or (self._mtn_payout if operator == "mtn" else network.payout)

    def phone(self, operator: str, number: str | None) -> dict[str, str]:
        """`number`: digits with the country code."""
        country, digits = NETWORKS[operator].country, number or ""
        if self._format == "national":
            return {"number": digits.removeprefix(_DIALLING_CODES[country]), "country": country}
        return {"number": f"+{digits}", "country": country}
