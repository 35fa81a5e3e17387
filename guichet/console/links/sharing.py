"""Addresses by which a link is shared: the program that opens them asks before anything is sent."""

from dataclasses import dataclass
from urllib.parse import quote

from guichet.console.page_request import MerchantRequest
from guichet.domain.payment_links import PaymentLink
from guichet.printable import printable_label


@dataclass(frozen=True, slots=True)
class Sharing:
    whatsapp: str
    sms: str
    mail: str


def sharing(request: MerchantRequest, merchant: str, link: PaymentLink, address: str) -> Sharing:
    """The same sentence for each. Its values are percent-encoded as a whole: nothing in a title can add a recipient, a
    copy or a second line to a header."""
    amount = request.amount(link.amount, link.currency)
    # As text, not as HTML: `request.text` escapes what it is given.
    values = {"merchant": merchant, "label": printable_label(link.description), "amount": amount, "address": address}
    message = request.text("links.share_message", **values).unescape()
    subject = request.text("links.share_subject", merchant=merchant, amount=amount).unescape()
    body, title = quote(message, safe=""), quote(" ".join(subject.split()), safe="")
    return Sharing(f"https://wa.me/?text={body}", f"sms:?body={body}", f"mailto:?subject={title}&body={body}")
