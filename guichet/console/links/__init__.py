"""Payment links and the cash desk: what a merchant shows to customers, and what they paid."""

from typing import Final

from guichet.console.links import cash_desk, link_page, list_page, new_page
from guichet.console.sections import MerchantPage

PAGES: Final = (
    MerchantPage("/links", "links.view", list_page.show, menu="links"),
    MerchantPage("/links/new", "links.change", new_page.show, new_page.create),
    MerchantPage("/links/{link:row}", "links.view", link_page.show, link_page.change),
    MerchantPage("/links/{link:row}/poster", "links.view", link_page.show_poster),
    MerchantPage("/cash-desk", "cash_desk.use", cash_desk.show, cash_desk.create, menu="cash_desk"),
    MerchantPage("/cash-desk/{link:row}", "cash_desk.use", cash_desk.show_sale, cash_desk.cancel),
)
