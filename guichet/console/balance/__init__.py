"""Balance, statements, exports and PDF documents."""

from typing import Final

from guichet.console.balance import balance_page, documents, exports_page

PAGES: Final = (*balance_page.PAGES, *documents.PAGES, *exports_page.PAGES)
