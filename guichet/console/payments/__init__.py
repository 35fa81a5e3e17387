"""The payments of a merchant: the list with filters and search, one payment with its story, its refund and receipt."""

from typing import Final

from guichet.console.payments import list_page, payment_page, receipt, refund_page

PAGES: Final = (*list_page.PAGES, *payment_page.PAGES, *refund_page.PAGES, *receipt.PAGES)
