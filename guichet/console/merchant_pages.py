"""Every page about one merchant. What is opened most stands first: an address is compared with each."""

from typing import Final

from guichet.console.sections import MerchantPage

MERCHANT_PAGES: Final = (
    MerchantPage("", "overview.view", "overview.page", "show", menu="overview"),
    MerchantPage("/payments", "payments.list", "payments.list_page", "show", menu="payments"),
    MerchantPage("/payments/{reference}", "payments.view", "payments.payment_page", "show"),
    MerchantPage("/payments/{reference}/refund", "payments.refund", "payments.refund_page", "show", "refund"),
    MerchantPage("/payments/{reference}/receipt", "payments.view", "payments.receipt", "show"),
    MerchantPage("/refund-proposals", "payments.refund", "payments.proposals_page", "show", below="payments"),
    MerchantPage("/links", "links.view", "links.link_pages", "show_list", menu="links"),
    MerchantPage("/links/{link:row}", "links.view", "links.link_pages", "show", "close"),
    MerchantPage("/links/{link:row}/poster", "links.view", "links.link_pages", "show_poster"),
    MerchantPage("/links/new", "links.change", "links.new_link", "show", "create"),
    MerchantPage("/cash-desk/day", "cash_desk.use", "links.cash_day", "show"),
    MerchantPage("/cash-desk", "cash_desk.use", "links.cash_desk", "show", "create", menu="cash_desk"),
    MerchantPage("/cash-desk/{link:row}", "cash_desk.use", "links.cash_desk", "show_sale", "cancel"),
    MerchantPage("/balance", "balance.view", "balance.balance_page", "show", menu="balance"),
    MerchantPage("/balance/statement.pdf", "balance.view", "balance.documents", "statement"),
    MerchantPage("/payments/{reference}/receipt.pdf", "payments.view", "balance.documents", "receipt"),
    MerchantPage("/exports", "exports.download", "balance.exports_page", "show", "ask", menu="exports"),
    MerchantPage("/exports/{number:row}/file", "exports.download", "balance.exports_page", "download"),
    MerchantPage("/webhooks", "webhooks.view", "webhook_endpoint", "show", "change", menu="webhooks"),
    MerchantPage("/webhooks/deliveries", "webhooks.view", "webhook_deliveries", "show_list", "resend_from_list"),
    MerchantPage("/webhooks/deliveries/{reference}", "webhooks.view", "webhook_deliveries", "show", "send_again"),
    MerchantPage("/developers", "keys.view", "developers", "show_keys", "change_keys", menu="developers"),
    MerchantPage("/developers/requests", "requests.view", "developers", "show_requests", menu="requests"),
    MerchantPage("/developers/clock", "keys.view", "developers", "show_clock", "move_clock"),
    MerchantPage("/team", "team.view", "team_page", "show", "change", menu="team"),
    MerchantPage("/mails", "overview.view", "mails_page", "show", "change", menu="mails"),
    MerchantPage("/activity", "activity.view", "activity_page", "show", menu="activity"),
)
