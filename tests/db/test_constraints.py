"""Every named constraint refuses what it must, and its name reaches us from both databases."""

from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Table, insert

from guichet.back_office.merchants import create_merchant
from guichet.bootstrap import service
from guichet.db import tables as t
from guichet.db.engine import Database
from guichet.db.errors import ConstraintViolated
from guichet.settings import Settings
from tests.db.rows import (
    APPROVAL,
    AUDIT_HEAD,
    AVAILABILITY,
    CALLBACK,
    CHECKPOINT,
    COUNT,
    DAILY_TOTAL,
    DELIVERY,
    DISPUTE,
    DOCUMENT,
    ENDPOINT,
    ENTRY,
    EVENT,
    EXPORT,
    EXPORT_CHUNK,
    FIGURE,
    IDEMPOTENCY_KEY,
    INCIDENT,
    KEY,
    LATE_RESULT,
    LATE_RETURN,
    LINK,
    LINK_OF_CHAIN,
    MAIL,
    MAIL_LINK,
    MEMBERSHIP,
    MERCHANT,
    OVERRIDE,
    PASSKEY,
    PAYMENT,
    PAYMENT_MAILS,
    POSTING,
    PROPOSAL,
    PUBLISHED_HEADS,
    REFUND,
    REQUEST,
    RUN,
    SESSION,
    STAFF_JOB,
    TREASURY_MOVEMENT,
    TREASURY_READING,
    USER,
    WALLET,
)

UUID = "11111111-2222-4333-8444-555555555555"

#: A job of the staff that is over, without its result.
ENDED = {"due_at": None, "parameters": None, "finished_at": 1}

#: (table, a good row or none, the faulty row's difference from a good one, the constraint's name)
FAULTS: list[tuple[Table, dict[str, Any], dict[str, Any] | None, dict[str, Any], str]] = [
    (t.merchants, MERCHANT, None, {"status": "closed"}, "ck_merchants_status"),
    (t.api_keys, KEY, {}, {}, "uq_api_keys_hash"),
    (t.api_keys, KEY, None, {"env": "prod"}, "ck_api_keys_env"),
    (t.api_keys, KEY, None, {"scopes": 0}, "ck_api_keys_scopes"),
    (t.api_keys, KEY, None, {"env": "test", "networks": "203.0.113.7"}, "ck_api_keys_networks"),
    (t.api_requests, REQUEST, None, {"env": "prod"}, "ck_api_requests_env"),
    (t.webhook_endpoints, ENDPOINT, None, {}, "pk_webhook_endpoints"),
    (t.webhook_endpoints, ENDPOINT, None, {"env": "prod"}, "ck_webhook_endpoints_env"),
    (t.payment_mode_overrides, OVERRIDE, {}, {}, "uq_payment_mode_overrides_all_merchants"),
    (
        t.payment_mode_overrides,
        OVERRIDE,
        {"merchant_id": 1},
        {"merchant_id": 1},
        "uq_payment_mode_overrides_merchant_id",
    ),
    (t.payment_mode_overrides, OVERRIDE, None, {"fee_percent": -1}, "ck_payment_mode_overrides_fee_percent"),
    (t.payment_mode_overrides, OVERRIDE, None, {"fee_fixed": -1}, "ck_payment_mode_overrides_fee_fixed"),
    (t.payment_links, LINK, {}, {}, "uq_payment_links_token"),
    (
        t.payment_links,
        LINK,
        {"external_id": "e"},
        {"external_id": "e", "token": "u"},
        "uq_payment_links_external_id",
    ),
    (
        t.payment_links,
        LINK,
        {"external_id": "e", "test": True},
        {"external_id": "e", "test": True, "token": "u"},
        "uq_payment_links_test_external_id",
    ),
    (
        t.payment_links,
        LINK,
        {"session_reference": UUID, "session_status": "open"},
        {"session_reference": UUID, "session_status": "open", "token": "u"},
        "uq_payment_links_session_reference",
    ),
    (
        t.payment_links,
        LINK,
        {"session_reference": UUID, "session_status": "open", "external_id": "e"},
        {"session_reference": UUID.replace("1", "2"), "session_status": "open", "external_id": "e", "token": "u"},
        "uq_payment_links_session_external_id",
    ),
    (
        t.payment_links,
        LINK,
        None,
        {"session_reference": UUID, "session_status": "paid"},
        "ck_payment_links_session_status",
    ),
    (t.payment_links, LINK, None, {"session_reference": UUID}, "ck_payment_links_session"),
    (
        t.payment_links,
        LINK,
        None,
        {"session_reference": UUID, "session_status": "completed"},
        "ck_payment_links_payment_reference",
    ),
    (t.payment_links, LINK, None, {"type": "limite"}, "ck_payment_links_type"),
    (t.payment_links, LINK, None, {"amount": 0}, "ck_payment_links_amount"),
    (t.payment_links, LINK, None, {"max_uses": 0}, "ck_payment_links_max_uses"),
    (t.payment_links, LINK, None, {"max_uses": 2, "reserved_uses": 3}, "ck_payment_links_uses"),
    (t.payment_links, LINK, None, {"reserved_uses": 1, "completed_uses": 2}, "ck_payment_links_uses"),
    (t.payments, PAYMENT, {}, {}, "uq_payments_reference"),
    (t.payments, PAYMENT, {"external_id": "e"}, {"external_id": "e", "reference": UUID}, "uq_payments_external_id"),
    (
        t.payments,
        PAYMENT,
        {"checkout_token": "c"},
        {"checkout_token": "c", "reference": UUID},
        "uq_payments_checkout_token",
    ),
    (t.payments, PAYMENT, None, {"env": "prod"}, "ck_payments_env"),
    (t.payments, PAYMENT, None, {"status": "paid", "next_poll_at": None}, "ck_payments_status"),
    (t.payments, PAYMENT, None, {"amount": 0, "total_amount": 5}, "ck_payments_amount"),
    (t.payments, PAYMENT, None, {"fee_amount": -1, "total_amount": 499}, "ck_payments_amount"),
    (t.payments, PAYMENT, None, {"total_amount": 506}, "ck_payments_total"),
    (t.payments, PAYMENT, None, {"next_poll_at": None}, "ck_payments_next_poll_at"),
    (t.payments, PAYMENT, None, {"status": "failed"}, "ck_payments_next_poll_at"),
    (t.refunds, REFUND, {}, {"reference": UUID}, "uq_refunds_payment_id"),
    (t.refunds, REFUND, {}, {"payment_id": 2}, "uq_refunds_reference"),
    (t.refunds, REFUND, None, {"env": "prod"}, "ck_refunds_env"),
    (t.refunds, REFUND, None, {"status": "paid", "processed_at": 1, "next_poll_at": None}, "ck_refunds_status"),
    (t.refunds, REFUND, None, {"amount": 0}, "ck_refunds_amount"),
    (t.refunds, REFUND, None, {"processed_at": 1}, "ck_refunds_processed_at"),
    (t.refunds, REFUND, None, {"next_poll_at": None}, "ck_refunds_next_poll_at"),
    (t.refunds, REFUND, None, {"automatic": "wish"}, "ck_refunds_automatic"),
    (t.refund_proposals, PROPOSAL, {}, {}, "pk_refund_proposals"),
    (t.refund_proposals, PROPOSAL, None, {"env": "prod"}, "ck_refund_proposals_env"),
    (t.refund_proposals, PROPOSAL, None, {"status": "expired"}, "ck_refund_proposals_status"),
    (t.events, EVENT, {}, {}, "uq_events_reference"),
    (t.idempotency_keys, IDEMPOTENCY_KEY, {}, {}, "uq_idempotency_keys_key"),
    (t.idempotency_keys, IDEMPOTENCY_KEY, None, {"env": "prod"}, "ck_idempotency_keys_env"),
    (t.events, EVENT, None, {"env": "prod"}, "ck_events_env"),
    (t.webhook_deliveries, DELIVERY, None, {"env": "prod"}, "ck_webhook_deliveries_env"),
    (t.webhook_deliveries, DELIVERY, None, {"status": "sent", "next_attempt_at": None}, "ck_webhook_deliveries_status"),
    (t.webhook_deliveries, DELIVERY, None, {"target": "other"}, "ck_webhook_deliveries_target"),
    (t.webhook_deliveries, DELIVERY, None, {"attempts": 6}, "ck_webhook_deliveries_attempts"),
    (t.webhook_deliveries, DELIVERY, None, {"delivered_at": 1}, "ck_webhook_deliveries_delivered_at"),
    (t.webhook_deliveries, DELIVERY, None, {"next_attempt_at": None}, "ck_webhook_deliveries_next_attempt_at"),
    (t.postings, POSTING, {}, {"amount": 2}, "uq_postings_cause"),
    (t.postings, POSTING, None, {"env": "prod"}, "ck_postings_env"),
    (t.postings, POSTING, None, {"amount": 0}, "ck_postings_amount"),
    (t.postings, POSTING, None, {"source": "wallet"}, "ck_postings_accounts"),
    (t.wallets, WALLET, {}, {}, "pk_wallets"),
    (t.wallets, WALLET, None, {"env": "prod"}, "ck_wallets_env"),
    (t.wallets, WALLET, None, {"status": "Ouvert"}, "ck_wallets_status"),
    (t.wallet_entries, ENTRY, None, {"env": "prod"}, "ck_wallet_entries_env"),
    (t.provider_callbacks, CALLBACK, {}, {}, "uq_provider_callbacks_subject"),
    (t.provider_callbacks, CALLBACK, None, {"env": "prod"}, "ck_provider_callbacks_env"),
    (t.provider_callbacks, CALLBACK, None, {"subject_type": "link"}, "ck_provider_callbacks_subject_type"),
    (t.provider_callbacks, CALLBACK, None, {"status": "lost", "due_at": None}, "ck_provider_callbacks_status"),
    (t.provider_callbacks, CALLBACK, None, {"due_at": None}, "ck_provider_callbacks_due_at"),
    (t.audit_log_head, AUDIT_HEAD, None, {"singleton": 2}, "ck_audit_log_head_singleton"),
    (t.published_heads, PUBLISHED_HEADS, None, {"singleton": 2}, "ck_published_heads_singleton"),
    (t.late_results, LATE_RESULT, {}, {}, "uq_late_results_subject"),
    (t.late_results, LATE_RESULT, None, {"env": "prod"}, "ck_late_results_env"),
    (t.late_results, LATE_RESULT, None, {"subject_type": "link"}, "ck_late_results_subject_type"),
    (t.late_results, LATE_RESULT, None, {"status": "lost"}, "ck_late_results_status"),
    (t.late_results, LATE_RESULT, None, {"stage": "lost", "amount": 1, "next_poll_at": None}, "ck_late_results_stage"),
    (t.late_results, LATE_RESULT, None, {"next_poll_at": None}, "ck_late_results_next_poll_at"),
    (t.late_results, LATE_RESULT, None, {"amount": 1}, "ck_late_results_amount"),
    (t.merchants, MERCHANT, {"is_house": True}, {"is_house": True}, "uq_merchants_house"),
    (t.late_returns, LATE_RETURN, {}, {}, "uq_late_returns_reference"),
    (t.late_returns, LATE_RETURN, None, {"env": "prod"}, "ck_late_returns_env"),
    (t.late_returns, LATE_RETURN, None, {"status": "lost", "next_poll_at": None}, "ck_late_returns_status"),
    (t.late_returns, LATE_RETURN, None, {"next_poll_at": None}, "ck_late_returns_next_poll_at"),
    (t.treasury_readings, TREASURY_READING, None, {"source": "rumour"}, "ck_treasury_readings_source"),
    (t.treasury_movements, TREASURY_MOVEMENT, {}, {}, "uq_treasury_movements_reference"),
    (t.treasury_movements, TREASURY_MOVEMENT, None, {"kind": "gift"}, "ck_treasury_movements_kind"),
    (t.treasury_movements, TREASURY_MOVEMENT, None, {"status": "lost"}, "ck_treasury_movements_status"),
    (t.treasury_movements, TREASURY_MOVEMENT, None, {"amount": 0}, "ck_treasury_movements_amount"),
    (t.treasury_movements, TREASURY_MOVEMENT, None, {"ended_at": None}, "ck_treasury_movements_ended_at"),
    (t.disputes, DISPUTE, {}, {"reference": UUID}, "uq_disputes_provider_reference"),
    (t.disputes, DISPUTE, {}, {"provider_reference": "du_2"}, "uq_disputes_reference"),
    (t.disputes, DISPUTE, None, {"env": "prod"}, "ck_disputes_env"),
    (t.disputes, DISPUTE, None, {"status": "gone", "closed_at": 1}, "ck_disputes_status"),
    (t.disputes, DISPUTE, None, {"status": "lost", "closed_at": 1, "borne_by": "bank"}, "ck_disputes_borne_by"),
    (t.disputes, DISPUTE, None, {"amount": 0}, "ck_disputes_amount"),
    (t.disputes, DISPUTE, None, {"closed_at": 1}, "ck_disputes_closed_at"),
    (t.disputes, DISPUTE, None, {"borne_by": "service"}, "ck_disputes_lost"),
    (t.disputes, DISPUTE, None, {"payment_id": None}, "ck_disputes_payment"),
    (t.incidents, INCIDENT, {}, {}, "uq_incidents_reference"),
    (t.incidents, INCIDENT, None, {"env": "prod"}, "ck_incidents_env"),
    (t.incidents, INCIDENT, None, {"subject_type": "link"}, "ck_incidents_subject_type"),
    (t.ledger_hash_chain, LINK_OF_CHAIN, {}, {}, "uq_ledger_hash_chain_first_posting_id"),
    (t.ledger_hash_chain, LINK_OF_CHAIN, None, {"last_posting_id": 0}, "ck_ledger_hash_chain_id_range"),
    (t.reconciliation_runs, RUN, {}, {}, "uq_reconciliation_runs_day"),
    (t.operator_availability, AVAILABILITY, None, {"state": "slow"}, "ck_operator_availability_state"),
    (t.operator_availability, AVAILABILITY, None, {"measured": "slow"}, "ck_operator_availability_measured"),
    (t.operator_availability, AVAILABILITY, None, {"stated": "CLOSED"}, "ck_operator_availability_stated"),
    (t.users, {**USER, "email": "twice"}, {}, {}, "uq_users_email"),
    (t.users, USER, None, {"email": "b", "status": "gone"}, "ck_users_status"),
    (t.users, USER, None, {"email": "b", "language": "de"}, "ck_users_language"),
    (t.users, USER, None, {"email": "b", "staff_role": "owner"}, "ck_users_staff_role"),
    (t.users, USER, None, {"email": "b", "status": "active"}, "ck_users_password_hash"),
    (t.users, USER, None, {"email": "b", "totp_confirmed": True}, "ck_users_totp_confirmed"),
    (t.memberships, MEMBERSHIP, {}, {"role": "reader"}, "pk_memberships"),
    (t.memberships, MEMBERSHIP, None, {"role": "admin"}, "ck_memberships_role"),
    (t.user_sessions, SESSION, {}, {}, "uq_user_sessions_hash"),
    (t.passkeys, PASSKEY, {}, {}, "uq_passkeys_credential_id"),
    (t.passkey_challenges, {"hash": "h", "created_at": 1}, {}, {}, "uq_passkey_challenges_hash"),
    (t.mail_links, MAIL_LINK, {}, {}, "uq_mail_links_hash"),
    (t.mail_links, MAIL_LINK, None, {"purpose": "key"}, "ck_mail_links_purpose"),
    (t.payment_mails, PAYMENT_MAILS, {}, {"chosen_at": 2}, "uq_payment_mails_user_id"),
    (t.payment_mails, PAYMENT_MAILS, {"user_id": None}, {"user_id": None}, "uq_payment_mails_customers"),
    (t.payment_mails, PAYMENT_MAILS, None, {"frequency": "hourly"}, "ck_payment_mails_frequency"),
    (t.payment_mails, PAYMENT_MAILS, None, {"due_at": 1}, "ck_payment_mails_due_at"),
    (t.mails, MAIL, None, {"status": "lost", "next_attempt_at": None}, "ck_mails_status"),
    (t.mails, MAIL, None, {"attempts": 6}, "ck_mails_attempts"),
    (t.mails, MAIL, None, {"next_attempt_at": None}, "ck_mails_next_attempt_at"),
    (t.mails, MAIL, None, {"message": None}, "ck_mails_message"),
    (t.approval_requests, APPROVAL, {}, {}, "uq_approval_requests_subject"),
    (t.approval_requests, APPROVAL, None, {"act": "payment.steal"}, "ck_approval_requests_act"),
    (t.approval_requests, APPROVAL, None, {"status": "lost"}, "ck_approval_requests_status"),
    (t.approval_requests, APPROVAL, None, {"status": "approved"}, "ck_approval_requests_decided"),
    (t.merchant_documents, DOCUMENT, {}, {}, "uq_merchant_documents_sha256"),
    (t.merchant_documents, DOCUMENT, None, {"media_type": "text/html"}, "ck_merchant_documents_media_type"),
    (t.merchant_documents, DOCUMENT, None, {"size": 0}, "ck_merchant_documents_size"),
    (t.merchant_documents, DOCUMENT, None, {"size": 5 * 1024 * 1024 + 1}, "ck_merchant_documents_size"),
    (t.exports, EXPORT, None, {"env": "prod"}, "ck_exports_env"),
    (t.exports, EXPORT, None, {"kind": "users"}, "ck_exports_kind"),
    (t.exports, EXPORT, None, {"format": "ods"}, "ck_exports_format"),
    (t.exports, EXPORT, None, {"language": "ee"}, "ck_exports_language"),
    (t.exports, EXPORT, None, {"status": "lost", "due_at": None}, "ck_exports_status"),
    (t.exports, EXPORT, None, {"since": 3}, "ck_exports_period"),
    (t.exports, EXPORT, None, {"kind": "movements"}, "ck_exports_currency"),
    (t.exports, EXPORT, None, {"due_at": None}, "ck_exports_due_at"),
    (t.export_chunks, EXPORT_CHUNK, {}, {}, "uq_export_chunks_number"),
    (t.staff_jobs, STAFF_JOB, {}, {}, "uq_staff_jobs_request_hash"),
    (t.staff_jobs, STAFF_JOB, None, {"kind": "ledger"}, "ck_staff_jobs_kind"),
    (t.staff_jobs, STAFF_JOB, None, {**ENDED, "status": "lost"}, "ck_staff_jobs_status"),
    (t.staff_jobs, STAFF_JOB, None, {"kind": "anonymise_customer"}, "ck_staff_jobs_merchant_id"),
    (t.staff_jobs, STAFF_JOB, None, {**ENDED, "status": "failed", "parameters": "p"}, "ck_staff_jobs_parameters"),
    (t.staff_jobs, STAFF_JOB, None, {"due_at": None}, "ck_staff_jobs_due_at"),
    (t.staff_jobs, STAFF_JOB, None, {"finished_at": 1}, "ck_staff_jobs_finished_at"),
    (t.staff_jobs, STAFF_JOB, None, {**ENDED, "status": "done"}, "ck_staff_jobs_result"),
    (t.wallet_checkpoints, CHECKPOINT, None, {"env": "prod"}, "ck_wallet_checkpoints_env"),
    (t.list_counts, COUNT, {}, {}, "pk_list_counts"),
    (t.list_counts, COUNT, None, {"level": "week"}, "ck_list_counts_level"),
    (t.daily_totals, DAILY_TOTAL, {}, {}, "pk_daily_totals"),
    (t.daily_totals, DAILY_TOTAL, None, {"amount": -1}, "ck_daily_totals_amount"),
    (t.payment_figures, FIGURE, {}, {}, "pk_payment_figures"),
    (t.payment_figures, FIGURE, None, {"env": "prod"}, "ck_payment_figures_env"),
    (t.payment_figures, FIGURE, None, {"status": "pending"}, "ck_payment_figures_status"),
]


def test_every_named_constraint_is_tested() -> None:
    named = {
        str(getattr(each, "name", None))
        for table in t.metadata.tables.values()
        for each in (*table.constraints, *(index for index in table.indexes if index.unique))
    }
    never_collide = {f"pk_{name}" for name in t.metadata.tables} - {
        "pk_wallets",
        "pk_webhook_endpoints",
        "pk_list_counts",
        "pk_payment_figures",
        "pk_daily_totals",
        "pk_refund_proposals",
        "pk_memberships",
    }
    never_collide.add("uq_list_count_changes")  # The triggers that write there add to the row that there is.
    foreign = {name for name in named if name.startswith("fk_")}
    assert {fault[-1] for fault in FAULTS} == named - never_collide - foreign


async def test_a_violated_constraint_is_named(db: Database, settings: Settings) -> None:
    async with service(settings) as opened:
        await create_merchant(opened.ctx, "M")
    await db.write(insert(t.users).values(USER))
    await db.write(insert(t.exports).values(EXPORT))
    await db.write(insert(t.late_results).values({**LATE_RESULT, "subject_id": 9}))
    for reference in (PAYMENT["reference"], UUID):
        await db.write(insert(t.payments).values({**PAYMENT, "env": "live", "reference": reference}))
    said = []
    for table, good, first, difference, _ in FAULTS:
        with pytest.raises(ConstraintViolated) as violated:  # noqa: PT012 - a good row before the faulty one
            async with db.transaction() as tx:
                if first is not None:
                    await tx.write(insert(table).values({**good, **first}))
                await tx.write(insert(table).values({**good, **difference}))
        said.append((table.name, difference, violated.value.name))
    assert said == [(table.name, difference, name) for table, _, _, difference, name in FAULTS]


async def test_a_row_without_its_parent_is_refused(db: Database, settings: Settings) -> None:
    """PostgreSQL names the foreign key; SQLite only says that there was one."""
    with pytest.raises(ConstraintViolated) as violated:
        await db.write(insert(t.payments).values({**PAYMENT, "reference": str(uuid4())}))
    expected = "FOREIGN KEY constraint failed" if settings.embedded else "fk_payments_merchant_id"
    assert violated.value.name == expected


async def test_a_missing_value_is_refused(db: Database) -> None:
    with pytest.raises(ConstraintViolated):
        await db.write(insert(t.merchants).values({"name": "M", "status": "active", "created_at": 1}))
