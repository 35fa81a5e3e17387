"""Every page about one merchant, by group."""

from typing import Final

from guichet.console import activity_page, developers, links, payments, team_page, webhooks
from guichet.console.balance import pages as balance
from guichet.console.overview import page as overview
from guichet.console.sections import MerchantPage

MERCHANT_PAGES: Final[tuple[MerchantPage, ...]] = (
    *overview.PAGES,
    *payments.PAGES,
    *links.PAGES,
    *balance.PAGES,
    *webhooks.PAGES,
    *developers.PAGES,
    *team_page.PAGES,
    *activity_page.PAGES,
)
