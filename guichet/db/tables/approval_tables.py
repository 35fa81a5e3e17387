"""The table of money acts that wait for a second person, or were decided by one."""

from typing import Final

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, String, Text

from guichet.db.tables.columns import id_column, merchant_column, one_of, partial_index, table
from guichet.domain.approvals import APPROVAL_STATUSES, MONEY_ACTS

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
    one_of("act", MONEY_ACTS, "approval_requests"),
    one_of("status", APPROVAL_STATUSES, "approval_requests"),
    CheckConstraint(
        "(status IN ('approved', 'refused')) = (decided_by IS NOT NULL AND decided_at IS NOT NULL)",
        name="ck_approval_requests_decided",
    ),
    partial_index("uq_approval_requests_subject", "subject", unique=True, where="status = 'pending'"),
)
