"""The tables of the database, with named constraints. The migrations make the same ones (held by a test)."""

from guichet.db.tables.audit_tables import audit_log, audit_log_head
from guichet.db.tables.columns import metadata
from guichet.db.tables.dispute_tables import disputes
from guichet.db.tables.head_tables import published_heads
from guichet.db.tables.late_result_tables import late_results
from guichet.db.tables.ledger_tables import ledger_audits, ledger_hash_chain, postings, wallet_entries, wallets
from guichet.db.tables.merchant_tables import api_keys, merchants, payment_mode_overrides, webhook_endpoints
from guichet.db.tables.operations_tables import (
    incidents,
    list_count_changes,
    list_counts,
    operator_attempts,
    operator_availability,
    reconciliation_runs,
    unmatched_callbacks,
    worker_leases,
    write_probe,
)
from guichet.db.tables.payment_tables import payment_links, payments, provider_callbacks, refunds
from guichet.db.tables.provider_tables import provider_balance_reads, provider_balances, provider_merchants
from guichet.db.tables.webhook_tables import webhook_deliveries

__all__ = [
    "api_keys",
    "audit_log",
    "audit_log_head",
    "disputes",
    "incidents",
    "late_results",
    "ledger_audits",
    "ledger_hash_chain",
    "list_count_changes",
    "list_counts",
    "merchants",
    "metadata",
    "operator_attempts",
    "operator_availability",
    "payment_links",
    "payment_mode_overrides",
    "payments",
    "postings",
    "provider_balance_reads",
    "provider_balances",
    "provider_callbacks",
    "provider_merchants",
    "published_heads",
    "reconciliation_runs",
    "refunds",
    "unmatched_callbacks",
    "wallet_entries",
    "wallets",
    "webhook_deliveries",
    "webhook_endpoints",
    "worker_leases",
    "write_probe",
]
