"""PayDunya's networks: what a payin by `softpay` needs, the name of the page's channel, the mode of a payout.

Every name is PayDunya's own, capital letters included: a wrong one is refused (docs/providers/paydunya.md, "Step 2,
softpay", "Names of channels", "Refunds").
"""

from collections.abc import Mapping
from typing import Final

from msgspec import field

from guichet.domain.records import Record


class Fields(Record, frozen=True):
    """What a `softpay` call is named, and the names of its fields. `more`: fields that are always the same."""

    path: str
    name: str
    email: str
    number: str
    token: str = "payment_token"  # noqa: S105
    #: The field of the code that the customer typed.
    code: str | None = None
    more: Mapping[str, str] = field(default_factory=dict)


class Network(Record, frozen=True):
    """`softpay`: None where the customer pays on the invoice's own page, which then offers `channel` alone."""

    #: Whose balance a payin fills, and a payout empties.
    country: str
    softpay: Fields | None = None
    channel: str | None = None
    #: The mode of payouts; None where there is none.
    payout: str | None = None
    #: The customer confirms on a page: `url` of the answer.
    redirects: bool = False
    #: The answer comes when the customer has confirmed, or needs no confirmation.
    answers_when_final: bool = False

    @property
    def dial(self) -> str:
        """The country code of its numbers; empty for cards."""
        return DIALLING_CODES.get(self.country, "")


#: By PayDunya's name of the country, which its balances have.
DIALLING_CODES: Final = {"BJ": "229", "BF": "226", "CI": "225", "ML": "223", "SN": "221", "TG": "228"}
#: PayDunya does not say which balance a card fills.
_ANY_COUNTRY: Final = ""


def _usual(path: str, prefix: str, *, code: str | None = None, **more: str) -> Fields:
    """The names of most networks."""
    return Fields(
        path, f"{prefix}_customer_fullname", f"{prefix}_email", f"{prefix}_phone_number", code=code, more=more
    )


def _own_token(path: str, prefix: str, number: str) -> Fields:
    """The names of the networks that put their prefix before the token too. `number`: the end of that field's name."""
    return Fields(path, f"{prefix}_fullName", f"{prefix}_email", f"{prefix}_{number}", f"{prefix}_payment_token")


NETWORKS: Final[Mapping[str, Network]] = {
    "mtn": Network("BJ", _usual("mtn-benin", "mtn_benin", mtn_benin_wallet_provider="MTNBENIN"), payout="mtn-benin"),
    "moov": Network("BJ", _usual("moov-benin", "moov_benin"), payout="moov-benin"),
    "celtiis_bj": Network(
        "BJ",
        Fields(
            "celtiis-cash",
            "celtiis_cash_customer_fullname",
            "celtiis_cash_customer_email",
            "celtiis_cash_phone_number",
        ),
        payout="celtiis-cash",
    ),
    "moov_bf": Network(
        "BF", _own_token("moov-burkina", "moov_burkina_faso", "phone_number"), payout="moov-burkina-faso"
    ),
    "orange_bf": Network(
        "BF",
        Fields("orange-money-burkina", "name_bf", "email_bf", "phone_bf", code="otp_code"),
        payout="orange-money-burkina",
        answers_when_final=True,
    ),
    "mtn_ci": Network("CI", _usual("mtn-ci", "mtn_ci", mtn_ci_wallet_provider="MTNCI"), payout="mtn-ci"),
    "moov_ci": Network("CI", _usual("moov-ci", "moov_ci"), payout="moov-ci", answers_when_final=True),
    # Its softpay needs a code, for which the contract has no field with this operator.
    "orange_ci": Network("CI", channel="orange-money-ci", payout="orange-money-ci"),
    "wave_ci": Network("CI", _own_token("wave-ci", "wave_ci", "phone"), payout="wave-ci", redirects=True),
    "orange_ml": Network(
        "ML",
        _usual("orange-money-mali", "orange_money_mali", orange_money_mali_customer_address="Bamako"),
        payout="orange-money-mali",
    ),
    "orange_sn": Network(
        "SN",
        Fields(
            "new-orange-money-senegal",
            "customer_name",
            "customer_email",
            "phone_number",
            "invoice_token",
            code="authorization_code",
        ),
        payout="orange-money-senegal",
        redirects=True,
    ),
    "free_sn": Network(
        "SN",
        Fields("free-money-senegal", "customer_name", "customer_email", "phone_number"),
        payout="free-money-senegal",
    ),
    "wave_sn": Network(
        "SN", _own_token("wave-senegal", "wave_senegal", "phone"), payout="wave-senegal", redirects=True
    ),
    "togocom_tg": Network(
        "TG", Fields("t-money-togo", "name_t_money", "email_t_money", "phone_t_money"), payout="t-money-togo"
    ),
    "moov_tg": Network("TG", _usual("moov-togo", "moov_togo", moov_togo_customer_address="Lomé"), payout="moov-togo"),
    "VISA": Network(_ANY_COUNTRY, channel="card"),
    "MASTERCARD": Network(_ANY_COUNTRY, channel="card"),
}
