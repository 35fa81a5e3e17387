"""For the developers of a merchant: API keys, the log of their requests, and the test clock."""

from typing import Final

from guichet.console.developers import clock_page, keys_page, requests_page
from guichet.console.sections import MerchantPage

PAGES: Final = (
    MerchantPage("/developers", "keys.view", keys_page.show, keys_page.change, menu="developers"),
    MerchantPage("/developers/requests", "requests.view", requests_page.show),
    MerchantPage("/developers/clock", "keys.view", clock_page.show, clock_page.change),
)
