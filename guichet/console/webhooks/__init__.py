"""Webhooks of a merchant in one environment: the endpoint, its secret, test events, the log of deliveries."""

from typing import Final

from guichet.console.sections import MerchantPage
from guichet.console.webhooks import delivery_list, delivery_page, endpoint_page

PAGES: Final = (
    MerchantPage("/webhooks", "webhooks.view", endpoint_page.show, endpoint_page.change, menu="webhooks"),
    MerchantPage("/webhooks/deliveries", "webhooks.view", delivery_list.show, delivery_list.change),
    MerchantPage("/webhooks/deliveries/{reference}", "webhooks.view", delivery_page.show, delivery_page.change),
)
