"""One good row of each table, without the columns that may be null."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Table, bindparam, insert

from guichet.db.engine import Writer
from guichet.domain.messages import encode, verbatim

REFERENCE: Final = "0d4f4a52-6f7e-4a5b-9f6d-2f1f0f1a8f10"
PAYMENT: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "env": "test",
    "reference": REFERENCE,
    "status": "pending",
    "amount": 500,
    "fee_amount": 5,
    "total_amount": 505,
    "currency": "XOF",
    "description": "d",
    "operator": "mtn",
    "provider_account": "sandbox",
    "created_at": 1,
    "updated_at": 1,
    "next_poll_at": 1,
    "poll_count": 0,
}
REFUND: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "env": "test",
    "reference": REFERENCE,
    "payment_id": 1,
    "payment_reference": REFERENCE,
    "amount": 505,
    "currency": "XOF",
    "status": "pending",
    "reason": "r",
    "created_at": 1,
    "held": True,
    "next_poll_at": 1,
    "poll_count": 0,
}
PROPOSAL: Final[dict[str, Any]] = {
    "payment_id": 1,
    "merchant_id": 1,
    "env": "test",
    "key_id": 1,
    "status": "open",
    "created_at": 1,
    "expires_at": 2,
}
LINK: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "token": "t",
    "type": "permanent",
    "amount": 1,
    "currency": "XOF",
    "description": "d",
    "reserved_uses": 0,
    "completed_uses": 0,
    "created_at": 1,
}
DELIVERY: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "env": "test",
    "reference": REFERENCE,
    "event": "payment.succeeded",
    "target": "account",
    "url": "https://a.test/",
    "destination": "a.test:443",
    "status": "pending",
    "attempts": 0,
    "created_at": 1,
    "next_attempt_at": 1,
}
IDEMPOTENCY_KEY: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "env": "test",
    "route": "POST /payments",
    "key": "k",
    "digest": "d",
    "resource": REFERENCE,
    "created_at": 1,
}
EVENT: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "env": "test",
    "reference": REFERENCE,
    "event": "payment.succeeded",
    "body": "{}",
    "created_at": 1,
}
POSTING: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "env": "test",
    "currency": "XOF",
    "cause": "payment.succeeded",
    "subject_id": 1,
    "leg": "amount",
    "source": "float:mtn::XOF",
    "destination": "wallet",
    "amount": 1,
    "created_at": 1,
}
ENTRY: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "env": "test",
    "currency": "XOF",
    "amount": 1,
    "subject_id": 1,
    "suspended": False,
    "created_at": 1,
}
KEY: Final[dict[str, Any]] = {"merchant_id": 1, "env": "test", "hash": "h", "preview": "p", "created_at": 1}
WALLET: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "env": "test",
    "currency": "XAF",
    "status": "Actif",
    "balance": 0,
    "updated_at": 1,
}
ENDPOINT: Final[dict[str, Any]] = {"merchant_id": 1, "env": "test", "secret": "s", "updated_at": 1}
MERCHANT: Final[dict[str, Any]] = {"name": "M", "status": "active", "currency": "XOF", "created_at": 1}
CALLBACK: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "env": "live",
    "subject_type": "payment",
    "subject_id": 1,
    "provider_account": "mtn_benin",
    "received_at": 1,
    "received_count": 1,
    "status": "pending",
    "due_at": 1,
}
INCIDENT: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "env": "live",
    "kind": "stuck",
    "subject_type": "payment",
    "reference": REFERENCE,
    "detail": encode(verbatim("d")),
    "occurrences": 1,
    "opened_at": 1,
    "last_seen_at": 1,
}
LINK_OF_CHAIN: Final[dict[str, Any]] = {
    "first_posting_id": 1,
    "last_posting_id": 2,
    "posting_ids": "1,2",
    "row_hashes": "m",
    "digest": "d",
    "created_at": 1,
}
COUNT: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "env": "test",
    "list_name": "payments",
    "level": "day",
    "bucket": 1,
    "status": "",
    "row_count": 1,
}
FIGURE: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "env": "test",
    "hour": 1,
    "operator": "mtn",
    "currency": "XOF",
    "status": "succeeded",
    "payment_count": 1,
    "amount": 500,
    "validation_time": 1,
}
DAILY_TOTAL: Final[dict[str, Any]] = {"merchant_id": 1, "day": 1, "amount": 500}
OVERRIDE: Final[dict[str, Any]] = {"operator": "mtn", "active": True}
RUN: Final[dict[str, Any]] = {
    "provider_account": "op",
    "day": 1,
    "due_at": 1,
    "attempts": 0,
    "lines": 0,
    "matched": 0,
    "differences": 0,
    "found": "[]",
}
AVAILABILITY: Final[dict[str, Any]] = {
    "operator": "mtn",
    "state": "up",
    "since": 1,
    "reason": "",
    "measured": "up",
}
PUBLISHED_HEADS: Final[dict[str, Any]] = {"singleton": 1, "database_id": "d"}
AUDIT_HEAD: Final[dict[str, Any]] = {"singleton": 1, "number": 0, "digest": "d"}
LATE_RESULT: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "env": "live",
    "currency": "XOF",
    "subject_type": "payment",
    "subject_id": 1,
    "reference": REFERENCE,
    "provider_account": "mtn_benin",
    "status": "pending",
    "stage": "asking",
    "told_at": 1,
    "refused_by_provider": True,
    "asked_count": 0,
    "next_poll_at": 1,
}
LATE_RETURN: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "env": "live",
    "late_result_id": 1,
    "reference": REFERENCE,
    "provider_account": "mtn_benin",
    "status": "pending",
    "requested_at": 1,
    "next_poll_at": 1,
}
TREASURY_READING: Final[dict[str, Any]] = {
    "place": "float:mtn::XOF",
    "source": "provider",
    **dict.fromkeys(("stated", "ledger", "low", "high", "difference", "moved", "read_at"), 1),
}
TREASURY_MOVEMENT: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "reference": "01a202b1-10b7-453a-868b-cad7dfa87efe",
    "kind": "transfer",
    "currency": "XOF",
    "amount": 1,
    "source": "bank:eco:XOF",
    "destination": "float:mtn::XOF",
    "status": "posted",
    "recorded_at": 1,
    "ended_at": 1,
}
DISPUTE: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "env": "live",
    "currency": "XOF",
    "payment_id": 1,
    "payment_reference": REFERENCE,
    "reference": REFERENCE,
    "provider_account": "stripe",
    "provider_reference": "du_1",
    "status": "open",
    "amount": 505,
    "reason": "fraudulent",
    "opened_at": 1,
    "taken": True,
}
USER: Final[dict[str, Any]] = {
    "email": "awa@example.com",
    "name": "Awa",
    "language": "fr",
    "status": "invited",
    "totp_confirmed": False,
    "totp_step": 0,
    "created_at": 1,
    "updated_at": 1,
}
MEMBERSHIP: Final[dict[str, Any]] = {"user_id": 1, "merchant_id": 1, "role": "owner", "created_at": 1}
SESSION: Final[dict[str, Any]] = {
    "user_id": 1,
    "hash": "h",
    "created_at": 1,
    "last_seen_at": 1,
    "address": "a",
    "agent": "b",
}
MAIL_LINK: Final[dict[str, Any]] = {
    "user_id": 1,
    "hash": "h",
    "purpose": "password",
    "created_at": 1,
    "expires_at": 2,
}
PASSKEY: Final[dict[str, Any]] = {
    "user_id": 1,
    "credential_id": "c",
    "public_key": "k",
    "sign_count": 0,
    "name": "n",
    "created_at": 1,
}
PAYMENT_MAILS: Final[dict[str, Any]] = {"merchant_id": 1, "user_id": 1, "frequency": "each", "chosen_at": 1}
MAIL: Final[dict[str, Any]] = {
    "recipient": "r",
    "kind": "password",
    "message": "m",
    "status": "pending",
    "attempts": 0,
    "created_at": 1,
    "next_attempt_at": 1,
}
APPROVAL: Final[dict[str, Any]] = {
    "act": "payment.settle",
    "subject": "s",
    "merchant_id": 1,
    "arguments": "{}",
    "reason": "r",
    "status": "pending",
    "requested_by": "a@example.com",
    "user_id": 1,
    "os_user": "console",
    "created_at": 1,
    "expires_at": 2,
}
DOCUMENT: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "name": "n.pdf",
    "media_type": "application/pdf",
    "size": 1,
    "sha256": "s",
    "uploaded_by": "a",
    "created_at": 1,
}
EXPORT: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "env": "test",
    "user_id": 1,
    "kind": "payments",
    "format": "csv",
    "language": "fr",
    "time_zone": "UTC",
    "since": 1,
    "until": 2,
    "status": "pending",
    "attempts": 0,
    "due_at": 1,
    "created_at": 1,
    "expires_at": 2,
    "row_count": 0,
    "size": 0,
}
STAFF_JOB: Final[dict[str, Any]] = {
    "kind": "ledger_margin",
    "user_id": 1,
    "request_hash": "h",
    "parameters": "p",
    "status": "pending",
    "attempts": 0,
    "due_at": 1,
    "created_at": 1,
}
EXPORT_CHUNK: Final[dict[str, Any]] = {"export_id": 1, "number": 0, "content": "c", "created_at": 1}
CHECKPOINT: Final[dict[str, Any]] = {"merchant_id": 1, "env": "test", "currency": "XOF", "at": 1, "balance": 0}
REQUEST: Final[dict[str, Any]] = {
    "merchant_id": 1,
    "env": "test",
    "key_id": 1,
    "at": 1,
    "method": "GET",
    "path": "/v1/balance",
    "status": 200,
    "duration": 1,
}


async def insert_rows(db: Writer, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Rows with the same columns, in their order, by one statement: one for each row costs twenty times as much."""
    await db.write_many(insert(table).values({name: bindparam(name) for name in rows[0]}), rows)
