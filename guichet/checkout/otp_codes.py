"""A customer requests a code by text message on a payment form: sends the request and says on the page what
happened."""

from dataclasses import replace
from typing import Final

from guichet.checkout.fields import FormInput
from guichet.checkout.forms import Checked
from guichet.context import AppContext
from guichet.domain.catalogue import PaymentMode
from guichet.domain.payment_links import PaymentLink
from guichet.pages import formatting
from guichet.pages.page_request import PageRequest
from guichet.payments.otp_codes import CodeNotSent, send_code

#: Name and value of the button that requests the code instead of paying.
BUTTON: Final = ("do", "code")
#: Reasons for which the sentence about a failed payment is used here too; others get the sentence `code.refused`.
_SHARED_REASONS: Final = frozenset(
    {"payer_not_found", "operator_unavailable", "configuration", "not_connected", "currency_not_accepted"}
)


def is_requested(mode: PaymentMode, form: dict[str, str]) -> bool:
    """Whether the customer pressed the button for a code."""
    name, value = BUTTON
    return mode.sends_code and form.get(name) == value


def phone_faults(checked: Checked) -> dict[str, list[str]]:
    """The faults of the phone number; only they prevent sending a code."""
    return {name: faults for name, faults in checked.faults.items() if name == "phone_number"}


async def request_code(
    ctx: AppContext, page: PageRequest, link: PaymentLink, mode: PaymentMode, phone_number: str, given: FormInput
) -> tuple[FormInput, str | None]:
    """Requests a code. Returns what the form shows now, and the key of a notice if no code was sent.

    Raises InvalidRequest when this mode cannot be used for this link.
    """
    if link.env == "test":  # Nobody is texted, and any code will do.
        return replace(given, code_sent=page.text("code.test")), None
    try:
        await send_code(ctx, mode, phone_number, link.amount, link.currency, link.description)
    except CodeNotSent as failure:
        field, sentence = _fault(page, mode, failure.refusal)
        notice = "code.notice" if failure.refusal else "code.notice_unclear"
        return replace(given, faults={field: [sentence]}), notice
    shown = formatting.masked_phone(phone_number, mode.dial_code)
    return replace(given, code_sent=page.text("code.sent", phone=shown)), None


def _fault(page: PageRequest, mode: PaymentMode, reason: str | None) -> tuple[str, str]:
    """The field and the sentence that explain why no code was sent."""
    field = "phone_number" if reason == "payer_not_found" else "otp"
    if reason is None:
        return field, page.text("code.unclear")
    key = f"failure.{reason}" if reason in _SHARED_REASONS else "code.refused"
    return field, page.text(key, mode=mode.name)
