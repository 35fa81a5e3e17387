"""The tables of acts that wait for a second person, and of the work that the staff ask for and the worker does."""

from typing import Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Text,
    UniqueConstraint,
)

from guichet.db.tables.columns import id_column, merchant_column, one_of, partial_index, queue_indexes, table
from guichet.domain.approvals import APPROVAL_STATUSES, APPROVED_ACTS
from guichet.domain.staff_jobs import STAFF_JOB_KINDS, STAFF_JOB_STATUSES

#: Columns stand in the order of the fields of `ApprovalRequest`. Of one subject one request waits at a time: two could
#: ask for contrary acts.
approval_requests: Final = table(
    "approval_requests",
    id_column(),
    Column("act", String(32), nullable=False),
    Column("subject", Text, nullable=False),
    merchant_column(),
    Column("arguments", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("status", String(8), nullable=False),
    Column("requested_by", Text, nullable=False),
    Column("user_id", BigInteger, ForeignKey("users.id"), nullable=False),
    Column("os_user", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("decided_by", Text),
    Column("decided_at", BigInteger),
    Column("decision_reason", Text),
    Column("effective_at", BigInteger),
    one_of("act", APPROVED_ACTS, "approval_requests"),
    one_of("status", APPROVAL_STATUSES, "approval_requests"),
    CheckConstraint(
        "(status IN ('approved', 'refused')) = (decided_by IS NOT NULL AND decided_at IS NOT NULL)",
        name="ck_approval_requests_decided",
    ),
    partial_index("uq_approval_requests_subject", "subject", unique=True, where="status = 'pending'"),
)

#: `parameters` and `result` are encrypted: a parameter may be a customer's number. Parameters are removed at the end.
staff_jobs: Final = table(
    "staff_jobs",
    id_column(),
    Column("kind", String(24), nullable=False),
    Column("merchant_id", BigInteger, ForeignKey("merchants.id")),
    Column("user_id", BigInteger, ForeignKey("users.id"), nullable=False),
    Column("request_hash", String(64), nullable=False),
    Column("parameters", Text),
    Column("status", String(8), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger),
    Column("result", Text),
    one_of("kind", STAFF_JOB_KINDS, "staff_jobs"),
    one_of("status", STAFF_JOB_STATUSES, "staff_jobs"),
    CheckConstraint("(kind = 'anonymise_customer') = (merchant_id IS NOT NULL)", name="ck_staff_jobs_merchant_id"),
    CheckConstraint("(status = 'pending') = (parameters IS NOT NULL)", name="ck_staff_jobs_parameters"),
    CheckConstraint("(status = 'pending') = (due_at IS NOT NULL)", name="ck_staff_jobs_due_at"),
    CheckConstraint("(status = 'pending') = (finished_at IS NULL)", name="ck_staff_jobs_finished_at"),
    CheckConstraint("(status = 'done') = (result IS NOT NULL)", name="ck_staff_jobs_result"),
    UniqueConstraint("request_hash", name="uq_staff_jobs_request_hash"),
    Index("ix_staff_jobs_newest", "kind", "id"),
    partial_index("ix_staff_jobs_merchant", "merchant_id", "id", where="merchant_id IS NOT NULL"),
    *queue_indexes("staff_jobs", "due_at", "kind"),
)
