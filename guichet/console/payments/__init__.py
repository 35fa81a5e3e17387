"""The payments of a merchant: the list with filters and search, one payment with its story, its refund and receipt."""

from typing import Final

from guichet.console.payments import list_page, payment_page, receipt_page, refund_page
from guichet.console.sections import MerchantPage

PAGES: Final = (
    MerchantPage("/payments", "payments.view", list_page.show, menu="payments"),
    MerchantPage("/payments/{reference}", "payments.view", payment_page.show),
    MerchantPage("/payments/{reference}/refund", "payments.refund", refund_page.show, refund_page.refund),
    MerchantPage("/payments/{reference}/receipt", "payments.view", receipt_page.show),
)
