"""The tables of the database, with named constraints. The migrations make the same ones (held by a test)."""

from guichet.db.tables.account_tables import (
    mail_links,
    mails,
    memberships,
    passkey_challenges,
    passkeys,
    payment_mail_progress,
    payment_mails,
    recovery_codes,
    user_sessions,
    users,
)
from guichet.db.tables.audit_tables import audit_log, audit_log_head, published_heads
from guichet.db.tables.back_office_tables import approval_requests, staff_jobs
from guichet.db.tables.columns import metadata
from guichet.db.tables.dispute_tables import disputes
from guichet.db.tables.export_tables import export_chunks, exports
from guichet.db.tables.late_result_tables import late_results, late_returns
from guichet.db.tables.ledger_tables import (
    ledger_audits,
    ledger_hash_chain,
    postings,
    wallet_checkpoints,
    wallet_entries,
    wallets,
)
from guichet.db.tables.merchant_tables import (
    api_keys,
    api_requests,
    idempotency_keys,
    key_acts,
    merchant_document_chunks,
    merchant_documents,
    merchant_notes,
    merchants,
    payment_mode_overrides,
    webhook_endpoints,
)
from guichet.db.tables.operations_tables import (
    incidents,
    list_count_changes,
    list_counts,
    operator_attempts,
    operator_availability,
    payment_figures,
    reconciliation_runs,
    unmatched_callbacks,
    worker_leases,
    write_probe,
)
from guichet.db.tables.payment_tables import (
    customer_names,
    customer_names_head,
    daily_totals,
    payment_links,
    payments,
    provider_callbacks,
    refund_proposals,
    refunds,
)
from guichet.db.tables.provider_tables import (
    provider_balance_reads,
    provider_balances,
    provider_identities,
    provider_merchants,
)
from guichet.db.tables.treasury_tables import treasury_movements, treasury_readings, treasury_rollups
from guichet.db.tables.webhook_tables import events, webhook_deliveries
