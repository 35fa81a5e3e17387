"""Payment links and the cash desk: what a merchant shows to customers, and what they paid."""

from typing import Final

from guichet.console.links import cash_day, cash_desk, link_pages, new_link

PAGES: Final = (*link_pages.PAGES, *new_link.PAGES, *cash_day.PAGES, *cash_desk.PAGES)
