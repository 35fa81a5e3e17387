"""For the developers of a merchant: API keys, and the log of their requests."""

from typing import Final

from guichet.console.developers import keys_page, requests_page
from guichet.console.sections import MerchantPage

PAGES: Final = (
    MerchantPage("/developers", "keys.view", keys_page.show, keys_page.change, menu="developers"),
    MerchantPage("/developers/requests", "requests.view", requests_page.show),
)
