"""The operators that pawaPay calls providers, and the numbers of its sandbox.

Source: docs/providers/pawapay.md, "Sandbox".
"""

from dataclasses import dataclass, replace
from typing import Final, Literal

from guichet_simulator.models import Kind
from guichet_simulator.scenarios import BY_NAME, Scenario

#: Hundredths.
MAX_AMOUNT: Final = 2_000_000_00

Auth = Literal["PROVIDER_AUTH", "PREAUTH", "REDIRECT_AUTH"]


@dataclass(frozen=True, slots=True)
class Provider:
    """How the customer confirms: PROVIDER_AUTH (PIN prompt), PREAUTH (a code beforehand) or REDIRECT_AUTH (a page)."""

    country: str
    dial: str
    sandbox_number: str | None
    auth: Auth = "PROVIDER_AUTH"
    currency: str = "XOF"


PROVIDERS: Final[dict[str, Provider]] = {
    "MTN_MOMO_BEN": Provider("BEN", "229", "22951345789"),
    "MOOV_BEN": Provider("BEN", "229", "22995345789"),
    "MOOV_BFA": Provider("BFA", "226", "22602345678"),
    "ORANGE_BFA": Provider("BFA", "226", "22607345678", auth="PREAUTH"),
    "MTN_MOMO_CIV": Provider("CIV", "225", "2250503456789"),
    "ORANGE_CIV": Provider("CIV", "225", "2250734567890"),
    "WAVE_CIV": Provider("CIV", "225", None, auth="REDIRECT_AUTH"),
    "ORANGE_SEN": Provider("SEN", "221", "221773456789"),
    "FREE_SEN": Provider("SEN", "221", "221763456789"),
    "WAVE_SEN": Provider("SEN", "221", None, auth="REDIRECT_AUTH"),
    "MTN_MOMO_COG": Provider("COG", "242", "242063456789", currency="XAF"),
}

#: The last three digits of a sandbox number; its other digits are those of the number that succeeds.
_SANDBOX_SUFFIXES: Final = {
    "019": ("declined", "limit_reached"),
    "029": ("declined", "payer_not_found"),
    "039": ("declined", "rejected_by_payer"),
    "048": ("declined", "insufficient_funds"),
    "049": ("declined", "insufficient_funds"),
    "068": ("declined", "unspecified"),
    "069": ("declined", "unspecified"),
    "129": ("never_final", None),
    "138": ("never_final", None),
}
_CREDIT_SUFFIXES: Final = {
    "089": ("declined", "payer_not_found"),
    "099": ("declined", "limit_reached"),
    "109": ("declined", "limit_reached"),
    "118": ("declined", "unspecified"),
    "119": ("declined", "unspecified"),
}


def sandbox_scenario(provider: Provider, phone: str, kind: Kind) -> Scenario | None:
    """What pawaPay's own sandbox does with this number; None when it is not a number of the sandbox."""
    known = provider.sandbox_number
    if known is None or phone[:-3] != known[:-3]:
        return None
    if phone == known:
        return BY_NAME["succeeds"]
    suffixes = _SANDBOX_SUFFIXES if kind == "debit" else _CREDIT_SUFFIXES
    name, reason = suffixes.get(phone[-3:], (None, None))
    return replace(BY_NAME[name], reason=reason) if name else None
