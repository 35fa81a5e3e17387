"""Genuine callbacks of every provider, properly signed: what hostile ones are made of."""

import json
from collections.abc import Mapping
from time import time
from typing import Final

from guichet_simulator.app import SECRETS
from guichet_simulator.signatures import hmac_hex
from reliability.fuzz.known import Known

#: The header of the signature, what stands between its time and the body, and its name (docs/providers).
_SIGNED: Final = {
    "wave": ("Wave-Signature", b"", "v1"),
    "sonatel": ("X-Sonatel-Signature", b",", "v1"),
    "stripe": ("Stripe-Signature", b".", "v1"),
    "fedapay": ("X-FEDAPAY-SIGNATURE", b".", "s"),
}
#: The address of each provider's callbacks: an account, or a provider that knows one address only.
_NAMES: Final = {
    "mtn": "mtn_benin",
    "wave": "wave_senegal",
    "pawapay": "pawapay",
    "feexpay": "feexpay",
    "orange": "orange_mali",
    "sonatel": "sonatel",
    "stripe": "stripe",
    "coris": "coris",
    "fedapay": "fedapay",
    "paydunya": "paydunya",
}
PROVIDERS: Final = tuple(_NAMES)


def members(provider: str, known: Known) -> Mapping[str, object]:
    """The JSON object that this provider sends about a live payment of ours."""
    return _members(known["live_payment"])[provider]


def _members(ours: str) -> Mapping[str, Mapping[str, object]]:
    payer = {"partyIdType": "MSISDN", "partyId": "22997009009"}
    wave = {"id": "cos-1", "client_reference": ours, "checkout_status": "complete", "amount": "5088"}
    sonatel = {"transactionId": "MP1", "reference": ours, "status": "SUCCESS"}
    stripe: dict[str, object] = {
        "id": "cs_1",
        "object": "checkout.session",
        "client_reference_id": ours,
        "amount_total": 5088,
    }
    return {
        "mtn": {"amount": "5088", "currency": "XOF", "externalId": ours, "status": "SUCCESSFUL", "payer": payer},
        "wave": {"id": "EV_1", "type": "checkout.session.completed", "data": wave},
        "pawapay": {"depositId": ours, "status": "COMPLETED", "amount": "5088", "currency": "XOF"},
        "feexpay": {"reference": "ref-1", "callback_info": ours, "status": "SUCCESSFUL", "amount": 5088},
        "orange": {"status": "SUCCESS", "notif_token": "n" * 20, "txnid": "MP1", "order_id": "ORDER1"},
        "sonatel": {"transaction": sonatel, "amount": {"value": 5088, "unit": "XOF"}},
        "stripe": {"id": "evt_1", "type": "checkout.session.completed", "data": {"object": stripe}},
        "coris": {"reference": ours, "status": "SUCCESS"},
        "fedapay": {"name": "transaction.approved", "object_id": 1, "entity": {"id": 1, "merchant_reference": ours}},
        "paydunya": {"data": {"invoice": {"token": "token1"}, "custom_data": {"reference": ours}}},
    }


def target(provider: str, known: Known, *, named: bool) -> str:
    """`named`: with our reference at the end of the address."""
    path = f"/providers/{_NAMES[provider]}/callback"
    return f"{path}/{known['live_payment']}" if named else path


def signature(provider: str, body: bytes) -> Mapping[str, str]:
    """The headers that sign `body` now, as this provider does it; empty where it does not sign."""
    if provider not in _SIGNED:
        return {}
    header, separator, scheme = _SIGNED[provider]
    seconds = str(int(time()))
    return {header: f"t={seconds},{scheme}={hmac_hex(SECRETS[provider], seconds.encode() + separator + body)}"}


def genuine_body(provider: str, known: Known) -> bytes:
    return json.dumps(members(provider, known)).encode()
