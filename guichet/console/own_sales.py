"""What a cashier sees: the sales of their own till, and what is paid through links to share, such as a poster's.

Whoever may not list a merchant's payments (`payments.list`) is a cashier here.
"""

from guichet.console.page_request import MerchantRequest
from guichet.domain.accounts import UserId
from guichet.domain.payment_links import PaymentLink
from guichet.domain.payments import Payment
from guichet.links import repository as links


def only_cashier(request: MerchantRequest) -> UserId | None:
    """The one whose sales the reader sees; None for somebody who sees all of them."""
    return None if request.may("payments.list") else request.person.id


def shows_link(request: MerchantRequest, link: PaymentLink) -> bool:
    return not link.cash_desk or only_cashier(request) in (None, link.cashier_id)


async def shows_payment(request: MerchantRequest, payment: Payment) -> bool:
    if only_cashier(request) is None:
        return True
    link = None if payment.link_id is None else await links.by_id(request.db, *request.scope, payment.link_id)
    return link is not None and shows_link(request, link)
