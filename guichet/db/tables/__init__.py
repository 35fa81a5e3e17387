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
from guichet.db.tables.columns import metadata
from guichet.db.tables.ledger_tables import (
    audit_log,
    audit_log_head,
    ledger_audits,
    ledger_hash_chain,
    postings,
    published_heads,
    wallet_checkpoints,
    wallet_entries,
    wallets,
)
from guichet.db.tables.merchant_tables import (
    api_keys,
    api_requests,
    export_chunks,
    exports,
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
    approval_requests,
    incidents,
    list_count_changes,
    list_counts,
    operator_attempts,
    operator_availability,
    payment_figures,
    reconciliation_runs,
    staff_jobs,
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
)
from guichet.db.tables.provider_tables import (
    provider_balance_reads,
    provider_balances,
    provider_identities,
    provider_merchants,
    treasury_movements,
    treasury_readings,
    treasury_rollups,
)
from guichet.db.tables.refund_tables import disputes, late_results, late_returns, refund_proposals, refunds
from guichet.db.tables.webhook_tables import events, webhook_deliveries
