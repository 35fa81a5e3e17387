"""Every page of the console: those about whoever uses the browser (signing in, factors, passwords, which merchants they
work for), those about one merchant, and those of the back office. What is opened most stands first in each table: an
address is compared with each."""

from typing import Final

from guichet.accounts.sign_in import SessionState
from guichet.console.sections import MerchantPage, StaffPage
from guichet.domain.records import Record
from guichet.domain.staff_jobs import RIGHT_OF

#: For whom a page is, by the state of the session; None: for anybody.
_ANYBODY: Final = None
OPEN: Final[tuple[SessionState, ...]] = ("open",)
_SIGNED_IN: Final[tuple[SessionState, ...]] = ("open", "needs_factor", "needs_setup")


class PersonPage(Record, frozen=True):
    """A page at `/console` and `path`, otherwise as `MerchantPage`. `states`: those of a session that may see it;
    anybody else is sent where they must go first."""

    path: str
    states: tuple[SessionState, ...] | None
    module: str
    show: str
    change: str | None = None


PERSON_PAGES: Final = (
    PersonPage("/sign-in", _ANYBODY, "sign_in_page", "show", "sign_in"),
    PersonPage("/sign-out", _SIGNED_IN, "sign_in_page", "leave", "sign_out"),
    # A one-time or recovery code; again before acts that need a fresh one.
    PersonPage("/factor", ("open", "needs_factor"), "factor_pages", "ask", "give"),
    # Another telephone in place of the one before.
    PersonPage("/factor/change", OPEN, "factor_pages", "show_new_telephone", "take_new_telephone"),
    # The browser's answer: it signs in, or is the second factor.
    PersonPage("/passkey", _ANYBODY, "passkey_pages", "show", "answer"),
    # What the script asks the browser, as JSON.
    PersonPage("/passkey/question", _ANYBODY, "passkey_pages", "show", "ask"),
    # The QR code of a telephone, and its first code.
    PersonPage("/factor/setup", ("open", "needs_setup"), "factor_pages", "show_setup", "set_up"),
    # Asks for a link to a new password.
    PersonPage("/password", _ANYBODY, "password_pages", "show_request", "request_link"),
    PersonPage("/password/{secret}", _ANYBODY, "password_pages", "show_new", "choose_new"),
    PersonPage("/invitation/{secret}", _ANYBODY, "password_pages", "show_invitation", "accept_invitation"),
    # Objects to a new approver.
    PersonPage("/objection/{secret}", _ANYBODY, "objection_page", "show", "object_to"),
    # From a mail: leads to the payment's refund.
    PersonPage("/refund/{reference}", OPEN, "payments.refund_page", "find"),
    # The merchants that somebody works for; with one, on to its overview.
    PersonPage("/", OPEN, "home_page", "show"),
    PersonPage("", OPEN, "home_page", "show"),
    PersonPage("/security/password", OPEN, "password_pages", "show_own", "change_own"),
    # Factors and sessions.
    PersonPage("/security", OPEN, "security_page", "show", "change"),
)
#: What would have been mailed.
DEVELOPMENT_PAGES: Final = (PersonPage("/mailbox", _ANYBODY, "mailbox_page", "show"),)
#: Signs in by a link that `guichet demo` printed.
DEMONSTRATION_PAGES: Final = (PersonPage("/sign-in/{secret}", _ANYBODY, "sign_in_page", "sign_in_by_link"),)

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

STAFF_PAGES: Final = (
    StaffPage("", "doctor.view", "merchants.list_page", "show_overview", menu="overview"),
    StaffPage("/merchants", "merchants.view", "merchants.list_page", "show", "find", menu="merchants"),
    StaffPage("/merchants/new", "merchants.change", "merchants.list_page", "show_new", "create"),
    StaffPage("/merchants/{merchant:row}", "merchants.view", "merchants.file_page", "show", "change"),
    StaffPage("/merchants/{merchant:row}/notes", "merchants.view", "merchants.notes_page", "show", "change"),
    StaffPage("/merchants/{merchant:row}/documents", "documents.view", "merchants.documents_page", "show", "upload"),
    StaffPage(
        "/merchants/{merchant:row}/documents/{document:row}", "documents.view", "merchants.documents_page", "download"
    ),
    StaffPage(
        "/merchants/{merchant:row}/documents/{document:row}/remove",
        "documents.change",
        "merchants.documents_page",
        "show_removal",
        "remove",
    ),
    StaffPage("/merchants/{merchant:row}/developers", "merchants.view", "merchants.developers_page", "show", "change"),
    StaffPage(
        "/merchants/{merchant:row}/anonymise",
        RIGHT_OF["anonymise_customer"],
        "merchants.anonymise_page",
        "show",
        "change",
    ),
    StaffPage(
        "/merchants/{merchant:row}/modes", "merchants.view", "modes_page", "show_of_merchant", "change_of_merchant"
    ),
    StaffPage("/modes", "modes.view", "modes_page", "show", "change", menu="modes"),
    StaffPage("/incidents", "incidents.view", "operations.incidents_page", "show_list", menu="incidents"),
    StaffPage("/incidents/{reference}", "incidents.view", "operations.incidents_page", "show", "change"),
    StaffPage("/approvals", "incidents.decide", "operations.approvals_page", "show_list", menu="approvals"),
    StaffPage("/approvals/{request:row}", "incidents.decide", "operations.approvals_page", "show", "decide"),
    StaffPage("/payments", "payments.search", "operations.payments_page", "show_search", "find", menu="payments"),
    StaffPage("/payments/{payment:row}", "payments.search", "operations.payments_page", "show"),
    StaffPage("/wallets", "wallets.view", "operations.wallets_page", "show_list", menu="wallets"),
    StaffPage("/wallets/{merchant:row}", "wallets.view", "operations.wallets_page", "show", "change"),
    StaffPage("/wallets/{merchant:row}/close", "wallets.change", "operations.wallets_page", "show_close", "close"),
    StaffPage("/wallets/{merchant:row}/statement", "wallets.view", "operations.wallets_page", "show_statement"),
    StaffPage("/treasury", "wallets.view", "operations.treasury_page", "show", "change", menu="treasury"),
    StaffPage("/treasury/places.csv", "wallets.view", "operations.treasury_page", "download_places"),
    StaffPage("/treasury/movements.csv", "wallets.view", "operations.treasury_page", "download_movements"),
    StaffPage(
        "/reconciliation", "reconciliation.view", "operations.reconciliation_page", "show_runs", menu="reconciliation"
    ),
    StaffPage("/reconciliation/{day}/{account}", "reconciliation.view", "operations.reconciliation_page", "show_run"),
    StaffPage(
        "/reconciliation/margin",
        RIGHT_OF["ledger_margin"],
        "operations.reconciliation_page",
        "show_margin",
        "ask_margin",
    ),
    StaffPage(
        "/ledger",
        "ledger.audit",
        "operations.reconciliation_page",
        "show_ledger",
        "start_audit",
        below="reconciliation",
    ),
    StaffPage(
        "/reconciliation/statement", RIGHT_OF["compare_statement"], "operations.statement_page", "show", "upload"
    ),
    StaffPage(
        "/reconciliation/statement/{job:row}/differences.csv",
        RIGHT_OF["compare_statement"],
        "operations.statement_page",
        "download",
    ),
    StaffPage(
        "/deliveries", "deliveries.view", "operations.deliveries_page", "show_list", "resend_list", menu="deliveries"
    ),
    StaffPage("/deliveries/{reference}", "deliveries.view", "operations.deliveries_page", "show", "send_again"),
    StaffPage("/doctor", "doctor.view", "operations.doctor_page", "show", menu="doctor"),
    StaffPage("/doctor/providers", "doctor.view", "operations.doctor_page", "show_accounts", "ask_accounts"),
    StaffPage("/doctor/wave-merchants", RIGHT_OF["wave_merchants"], "operations.doctor_page", "show_wave", "ask_wave"),
    StaffPage("/staff", "staff.view", "people", "show_staff", "invite_colleague", menu="staff"),
    StaffPage("/staff/{user:row}", "staff.view", "people", "show_colleague", "change_colleague"),
    StaffPage("/users", "merchants.view", "people", "show_search", "find", below="merchants"),
    StaffPage("/users/{user:row}", "merchants.view", "people", "show_user", "change_user", below="merchants"),
    StaffPage("/audit-log", "audit_log.view", "audit_log_page", "show", "check", menu="audit_log"),
)
