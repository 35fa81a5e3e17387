"""Every page about one merchant, by group."""

from typing import Final

from guichet.console import (
    activity_page,
    balance,
    developers,
    links,
    mails_page,
    payments,
    team_page,
    webhook_deliveries,
    webhook_endpoint,
)
from guichet.console.overview import page as overview
from guichet.console.sections import MerchantPage

MERCHANT_PAGES: Final[tuple[MerchantPage, ...]] = (
    *overview.PAGES,
    *payments.PAGES,
    *links.PAGES,
    *balance.PAGES,
    *webhook_endpoint.PAGES,
    *webhook_deliveries.PAGES,
    *developers.PAGES,
    *team_page.PAGES,
    *mails_page.PAGES,
    *activity_page.PAGES,
)
