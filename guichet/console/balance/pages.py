"""The pages about balance, exports and documents."""

from typing import Final

from guichet.console.balance import balance_page, documents, exports_page
from guichet.console.sections import MerchantPage

PAGES: Final = (
    MerchantPage("/balance", "balance.view", balance_page.show, menu="balance"),
    MerchantPage("/balance/statement.pdf", "balance.view", documents.statement),
    MerchantPage("/exports", "exports.download", exports_page.show, exports_page.ask, below="balance"),
    MerchantPage("/exports/{number:row}/file", "exports.download", exports_page.download),
    MerchantPage("/payments/{reference}/receipt.pdf", "payments.view", documents.receipt),
)
