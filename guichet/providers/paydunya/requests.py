"""What PayDunya is sent for a payin: the invoice, and the charge of one network on it; and how it wants numbers.

Source: docs/providers/paydunya.md, "Initiating a payment".
"""

from collections.abc import Mapping
from typing import Any, Final

from guichet.domain.phone_numbers import written_forms
from guichet.providers.base import CARDS, Charge, NotProcessed
from guichet.providers.paydunya.networks import NETWORKS, Network
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.choices import choice
from guichet.providers.shared.fields import plain_text, return_url, text_or_none, units, value_at

#: The least that it takes or pays out, in main units.
MIN_AMOUNT: Final = 200
_ORANGE_SENEGAL: Final = "orange_sn"
#: The pages that it offers, best known first.
_ORANGE_PAGES: Final = ("url", "maxit_url")
_CELTIIS: Final = "celtiis_bj"
_MAX_TEXT: Final = 60


class PayinRequests:
    """The requests of one account. Raises ValueError for an `orange_sn_page` that does not exist."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._store, self._email = settings["store"], settings["email"]
        self._celtiis_field = settings.get("celtiis_phone_field")
        self._return_url = settings.get("return_url")
        self._orange_page = choice(settings, "orange_sn_page", _ORANGE_PAGES)

    def invoice(self, charge: Charge) -> dict[str, Any]:
        payment = charge.payment
        body = self.invoice_of(units(charge.amount), payment.description)
        network = NETWORKS[payment.operator]
        if network.channel:
            number = national_number(network, payment.phone_number) if payment.phone_number else ""
            person = {"name": _name(charge), "email": payment.email or self._email, "phone": number}
            customer = {name: text for name, text in person.items() if text}
            body["invoice"] |= {"channels": [network.channel], "customer": customer}
        page = return_url(charge, self._return_url)
        actions = {"callback_url": charge.notify_url, "return_url": page, "cancel_url": page}
        body["actions"] = {name: url for name, url in actions.items() if url}
        return body | {"custom_data": {"reference": payment.reference}}

    def invoice_of(self, amount: int, description: str) -> dict[str, Any]:
        """`amount` in main units."""
        invoice = {"total_amount": amount, "description": plain_text(description, _MAX_TEXT)}
        return {"invoice": invoice, "store": {"name": self._store}}

    def softpay(self, charge: Charge, token: str) -> tuple[str, dict[str, str]]:
        """The name of the call, and its body; `token`: of the invoice that has the amount."""
        payment = charge.payment
        network = NETWORKS[payment.operator]
        fields = network.softpay
        assert fields is not None
        number_field = self._celtiis_field if payment.operator == _CELTIIS else None
        body = {
            fields.name: _name(charge),
            fields.email: payment.email or self._email,
            number_field or fields.number: national_number(network, payment.phone_number or ""),
            fields.token: token,
            **fields.more,
        }
        if fields.code and charge.otp:
            body[fields.code] = charge.otp
        if payment.operator == _ORANGE_SENEGAL:
            body["api_type"] = "OTPCODE" if charge.otp else "QRCODE"
        return fields.path, body

    def page(self, body: Mapping[str, Any], charge: Charge) -> str | None:
        """Where the customer confirms; None where that is on the telephone, or was done by giving a code."""
        if charge.otp or not NETWORKS[charge.payment.operator].redirects:
            return None
        return as_address(value_at(body, "other_url", self._orange_page)) or as_address(body.get("url"))


def as_address(value: object) -> str | None:
    """None for what no browser can be sent to."""
    text = text_or_none(value)
    return text if text is not None and text.startswith(("https://", "http://")) else None


def foreign_number(operator: str, number: str | None) -> NotProcessed | None:
    """Why a number is not sent: it is none of the network's country. A card needs none."""
    prefix = NETWORKS[operator].dial
    if operator in CARDS or (number or "").startswith(prefix):
        return None
    return NotProcessed("payer_not_found", ProviderAnswer.ONLY_NUMBERS_WITH(operator=operator, prefix=prefix))


def national_number(network: Network, number: str) -> str:
    """The number as it is dialled in its country; in Bénin with the two digits of 2024."""
    return written_forms(number)[0].removeprefix(network.dial)


def _name(charge: Charge) -> str:
    """A full name is demanded, and not every merchant asks for one."""
    names = " ".join(filter(None, (charge.payment.firstname, charge.payment.lastname)))
    return plain_text(names, _MAX_TEXT) if names else "Client"
