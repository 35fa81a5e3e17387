"""How the conformance tests reach each provider, pay through it, and what its API cannot settle."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from guichet.providers.orange.provider import order_id
from guichet.providers.shared.client import ProviderAccount
from guichet_simulator.app import SECRETS
from guichet_simulator.scenarios import Scenario
from tests.providers.simulated_providers import Setup

#: Responses without information, after which the request is or is not in the provider's books.
LOST_BUT_TAKEN = frozenset(
    {"lost_answer", "lost_answer_declined", "error_500", "unreadable", "halfway", "unavailable_stored"}
)
LOST_AND_NOT_TAKEN = frozenset({"lost_request", "error_500_not_stored", "unavailable"})
#: Provably not taken: with no other route, a payment fails at once, a refund is tried again. (So is a refund that was
#: lost on its way, if repeating it is safe: here each repeat meets the same scenario, so the refund stays pending.)
NOT_TAKEN = frozenset({"unauthorized", "rate_limited", "not_configured"})
#: Of these, what is our own fault: the answer is 500 and not a refusal.
OUR_FAULT = frozenset({"unauthorized", "not_configured"})
REFUSED_AT_ONCE = frozenset({"refused", "business_500", "ambiguous_refusal"})


@dataclass(frozen=True)
class ProviderCase:
    """One provider in the matrix: how to reach it, how to pay through it, and what only a person can settle.

    `stays_pending`: debit scenarios that the provider's API gives no means to settle. `refunds`: it can refund.
    `polls`: a debit can be pending there, so that there is a first status query.
    `digits`: where the simulator reads the scenario from, "phone" or "amount".
    """

    provider: str
    operator: str
    settings: Mapping[str, str]
    order: Mapping[str, Any] = field(default_factory=dict)
    dial: str = "229"
    digits: str = "phone"
    base: str = ""
    stays_pending: frozenset[str] = frozenset()
    #: Scenarios that its responses make undecidable.
    undecidable: frozenset[str] = frozenset()
    refunds: bool = True
    polls: bool = True
    #: The reference under which the simulator stores our payment.
    stored_as: Callable[[str], str] = str

    @property
    def setup(self) -> Setup:
        base = "{sim}/" + (self.base or self.provider)
        account = ProviderAccount(f"{self.provider}_one", self.provider, base, self.settings)
        return Setup({account.name: account}, {self.operator: (account.name,)})

    def body(self, prefix: str, scenario: Scenario) -> dict[str, Any]:
        """The order whose last four digits are {prefix}{scenario}; every scenario has a number and an amount."""
        last = f"{prefix}{scenario.digits}"
        phone = f"{self.dial}77123{last if self.digits == 'phone' else '0000'}"
        amount = 10_000 + int(last) if self.digits == "amount" else 5000 + int(scenario.digits)
        return {"amount": amount, "operator": self.operator, "phone_number": phone, **self.order}


_PERSON = {"customer": {"firstname": "Awa", "lastname": "Diop", "email": "awa@example.com"}}

PROVIDER_CASES = {
    each.provider: each
    for each in (
        ProviderCase(
            "mtn",
            "mtn",
            {
                "target_env": "mtnbenin",
                "subscription_key": "collection-key",
                "api_user": "user",
                "api_key": "key",
                "disbursement_subscription_key": "disbursement-key",
            },
        ),
        ProviderCase(
            "wave",
            "wave_sn",
            {"country": "sn", "api_key": "wave_sn_prod_simulator", "webhook_secret": SECRETS["wave"]},
            dial="221",
        ),
        ProviderCase("pawapay", "mtn", {"token": "simulator"}),
        ProviderCase(
            "feexpay",
            "moov",
            {"api_key": "fp_simulator", "shop": "simulatorshop01"},
            stays_pending=LOST_AND_NOT_TAKEN,
        ),
        ProviderCase(
            "orange",
            "orange_ml",
            {"country": "ml", "client_id": "c", "client_secret": "s", "merchant_key": "m"},
            dial="223",
            digits="amount",
            stays_pending=LOST_BUT_TAKEN | LOST_AND_NOT_TAKEN | {"duplicate"},
            refunds=False,
            stored_as=order_id,
        ),
        ProviderCase(
            "sonatel",
            "orange_sn",
            {
                "client_id": "c",
                "client_secret": "s",
                "merchant_code": "123456",
                "retailer_msisdn": "771110000",
                "retailer_pin": "1234",
                "webhook_secret": SECRETS["sonatel"],
            },
            order={"otp": "123456"},
            dial="221",
            stays_pending=LOST_AND_NOT_TAKEN,
        ),
        ProviderCase(
            "stripe",
            "VISA",
            {"secret_key": "sk_live_simulator", "webhook_secret": SECRETS["stripe"]},
            order=_PERSON,
            digits="amount",
            stays_pending=LOST_AND_NOT_TAKEN,
        ),
        ProviderCase(
            "coris",
            "coris",
            {"client_id": "c", "client_secret": SECRETS["coris"], "code_pv": "PV1"},
            order={"otp": "123456"},
            base="coris/external/v1/api",
            # A wrong code and a code that was used already are refused in the same way; we never repeat a payment.
            undecidable=frozenset({"duplicate"}),
            stays_pending=LOST_BUT_TAKEN | LOST_AND_NOT_TAKEN,
            refunds=False,
            polls=False,
        ),
        ProviderCase("fedapay", "moov", {"secret_key": "sk_live_simulator", "webhook_secret": SECRETS["fedapay"]}),
        ProviderCase(
            "paydunya",
            "orange_bf",
            {
                "master_key": "master-simulator",
                "private_key": "live_private_simulator",
                "token": "token-simulator",
                "store": "Guichet",
                "email": "paiements@example.com",
            },
            order={"otp": "123456"},
            dial="226",
            base="paydunya/api",
        ),
    )
}
