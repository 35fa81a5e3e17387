"""Every page of the back office."""

from typing import Final

from guichet.console.sections import StaffPage
from guichet.domain.staff_jobs import RIGHT_OF

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
