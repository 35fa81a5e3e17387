"""FeexPay's nineteen networks: what each one needs for a payin, and how it pays out.

Source: docs/providers/feexpay.md, "Initiating a payment", "Refunds".
"""

from dataclasses import dataclass
from typing import Final

from guichet.clock import Instant, to_datetime


@dataclass(frozen=True, slots=True)
class Network:
    """`payout_path` ends the path of payouts; None for `transfer/global`, "" where there are no payouts."""

    label: str
    dial: str
    payout_path: str | None
    currency: str = "XOF"
    #: The customer confirms on a web page or in an app that `payment_url` opens.
    redirects: bool = False
    needs_return_url: bool = False
    #: The customer gets a code beforehand, and the payin must contain it.
    needs_code: bool = False
    #: A payin without a code makes the network text one.
    sends_code: bool = False
    #: The value of `network` that distinguishes this network from others with the same payout path.
    payout_label: str | None = None
    min_payout: int = 100

    def reference(self, now: Instant, ref: str) -> str:
        """FeexPay's identifier of a transaction: Celtiis has a format of its own, the others a UUID."""
        if self.label == "CELTIIS BJ":
            return f"AG_{to_datetime(now):%Y%m%d}_{ref.replace('-', '')[:20]}"
        return ref


NETWORKS: Final[dict[str, Network]] = {
    "mtn": Network("MTN", "229", None, payout_label="MTN", min_payout=50),
    "moov": Network("MOOV", "229", None, payout_label="MOOV", min_payout=50),
    "celtiis_bj": Network("CELTIIS BJ", "229", "celtiis_bj", payout_label="CELTIIS BJ", min_payout=50),
    "coris": Network("CORIS", "229", "", sends_code=True),
    "moov_bf": Network("MOOV BF", "226", "moov_bf"),
    "orange_bf": Network("ORANGE BF", "226", "orange_bf", needs_code=True),
    "wave_bf": Network("WAVE BF", "226", "wave_bf", redirects=True),
    "mtn_ci": Network("MTN CI", "225", "mtn_ci"),
    "moov_ci": Network("MOOV CI", "225", "moov_ci", redirects=True),
    "orange_ci": Network("ORANGE CI", "225", "orange_ci", redirects=True),
    "wave_ci": Network("WAVE CI", "225", "wave_ci", redirects=True),
    "orange_ml": Network("ORANGE ML", "223", "orange_ml"),
    "mobicash_ml": Network("MOBICASH ML", "223", "mobicash_ml"),
    "orange_sn": Network("ORANGE SN", "221", "orange_sn", redirects=True),
    "free_sn": Network("FREE SN", "221", "free_sn", redirects=True, needs_return_url=True),
    "wave_sn": Network("WAVE SN", "221", "wave_sn", redirects=True),
    "togocom_tg": Network("TOGOCOM TG", "228", "togo", payout_label="TOGOCOM TG"),
    "moov_tg": Network("MOOV TG", "228", "togo", payout_label="MOOV TG"),
    "mtn_cg": Network("MTN CG", "242", "mtn_cg", currency="XAF"),
}


def payout_network(path: str | None, label: object) -> tuple[str, Network] | None:
    """The operator and the network that a payout names by its path and its `network`; None when there is none."""
    for operator, network in NETWORKS.items():
        if network.payout_path == path and network.payout_label in (None, label):
            return operator, network
    return None
