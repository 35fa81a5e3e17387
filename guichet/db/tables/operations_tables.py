"""The tables of what the staff must look at, of the acts that wait for a second person and the work that the staff ask
for, and of the sizes of the long lists."""

from typing import Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    String,
    Text,
    UniqueConstraint,
)

from guichet.db.tables.columns import (
    UUID,
    env_column,
    id_column,
    merchant_column,
    one_of,
    partial_index,
    queue_indexes,
    table,
)
from guichet.domain.approvals import APPROVAL_STATUSES, APPROVED_ACTS
from guichet.domain.availability import OPERATOR_STATES
from guichet.domain.merchants import ENVS
from guichet.domain.payments import INCIDENT_SUBJECTS
from guichet.domain.staff_jobs import STAFF_JOB_KINDS, STAFF_JOB_STATUSES

#: What the staff must look at: a provider that contradicts us, a payment that cannot be settled. Open while `closed_at`
#: is null.
incidents: Final = table(
    "incidents",
    id_column(),
    merchant_column(),
    env_column(),
    Column("kind", String(32), nullable=False),
    Column("subject_type", String(8), nullable=False),
    Column("reference", UUID, nullable=False),
    Column("provider_account", String(64)),
    Column("detail", Text, nullable=False),
    Column("occurrences", Integer, nullable=False),
    Column("opened_at", BigInteger, nullable=False),
    Column("last_seen_at", BigInteger, nullable=False),
    Column("closed_at", BigInteger),
    UniqueConstraint("merchant_id", "kind", "reference", name="uq_incidents_reference"),
    one_of("env", ENVS, "incidents"),
    one_of("subject_type", INCIDENT_SUBJECTS, "incidents"),
    partial_index("ix_incidents_open", "id", where="closed_at IS NULL"),
    partial_index("ix_incidents_open_account", "provider_account", "kind", where="closed_at IS NULL"),
)

#: Callbacks of providers that match no payment or refund: a bounded sample for the staff, never acted upon.
unmatched_callbacks: Final = table(
    "unmatched_callbacks",
    id_column(),
    Column("provider_account", String(64), nullable=False),
    Column("path", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("reason", String(32), nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Index("ix_unmatched_callbacks_received_at", "received_at"),
    Index("ix_unmatched_callbacks_provider_account", "provider_account", "received_at", "id"),
)

#: The comparison of one provider account with our ledger for one day (`day`: when it began, UTC). Due while `due_at` is
#: set, which is also the lease of the worker that is at it; `finished_at`: when the latest comparison ended, whose
#: counts these are. `found` has the first differences as JSON, `error` why the latest attempt could not be made.
reconciliation_runs: Final = table(
    "reconciliation_runs",
    id_column(),
    Column("provider_account", String(64), nullable=False),
    Column("day", BigInteger, nullable=False),
    Column("due_at", BigInteger),
    Column("attempts", Integer, nullable=False),
    Column("started_at", BigInteger),
    Column("finished_at", BigInteger),
    Column("lines", BigInteger, nullable=False),
    Column("matched", BigInteger, nullable=False),
    Column("differences", BigInteger, nullable=False),
    Column("found", Text, nullable=False),
    Column("error", Text),
    UniqueConstraint("provider_account", "day", name="uq_reconciliation_runs_day"),
    Index("ix_reconciliation_runs_day", "day"),
    partial_index("ix_reconciliation_runs_due", "due_at", "id", where="due_at IS NOT NULL"),
)

#: Initiations of live payments by operator and minute (when it began), and how many failed for technical reasons.
operator_attempts: Final = table(
    "operator_attempts",
    Column("minute", BigInteger, nullable=False),
    Column("operator", String(32), nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("failures", BigInteger, nullable=False),
    PrimaryKeyConstraint("minute", "operator", name="pk_operator_attempts"),
)

#: What follows from them, joined with what the operator's provider states.
operator_availability: Final = table(
    "operator_availability",
    Column("operator", String(32), nullable=False),
    Column("state", String(8), nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("measured", String(8), nullable=False),
    Column("stated", String(8)),
    Column("stated_by", String(64)),
    Column("stated_at", BigInteger),
    PrimaryKeyConstraint("operator", name="pk_operator_availability"),
    one_of("state", OPERATOR_STATES, "operator_availability"),
    one_of("measured", OPERATOR_STATES, "operator_availability"),
    one_of("stated", OPERATOR_STATES, "operator_availability"),
)

#: Work that one worker does for all of them at times: nobody else does it before `until`. `result`: what the work last
#: found, as JSON, where others read that.
worker_leases: Final = table(
    "worker_leases",
    Column("name", String(32), nullable=False),
    Column("until", BigInteger, nullable=False),
    Column("result", Text),
    PrimaryKeyConstraint("name", name="pk_worker_leases"),
)

#: One row, written again and again: if that works, a payment can be written too (`db/write_probe.py`).
write_probe: Final = table(
    "write_probe",
    Column("name", String(16), nullable=False),
    Column("written_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("name", name="pk_write_probe"),
)

#: How many rows a long list has, by hour and by day of creation, so that a total and a distant page cost the same
#: however many rows there are. Triggers (made by the first migration) note each change in `list_count_changes`; the
#: worker adds the changes to `list_counts`. `status` is empty in counts of all rows. The pending ones have no counts:
#: they are all rows less those of every other status, so that a new row is counted once.
list_counts: Final = table(
    "list_counts",
    merchant_column(),
    env_column(),
    Column("list_name", String(48), nullable=False),
    Column("level", String(4), nullable=False),
    Column("bucket", Integer, nullable=False),
    Column("status", String(16), nullable=False),
    Column("row_count", BigInteger, nullable=False),
    PrimaryKeyConstraint("merchant_id", "env", "list_name", "level", "bucket", "status", name="pk_list_counts"),
    one_of("level", ("hour", "day", "all"), "list_counts"),
    is_index=True,
)

#: Sums that are not rolled up yet. SQLite, which has one writer, keeps one row for each key; on PostgreSQL each change
#: is a row of its own, so that no transaction waits for another one.
list_count_changes: Final = table(
    "list_count_changes",
    id_column(),
    Column("merchant_id", BigInteger, nullable=False),
    env_column(),
    Column("list_name", String(48), nullable=False),
    Column("hour", Integer, nullable=False),
    Column("status", String(16), nullable=False, server_default=""),
    # Of payments that have a result: what `payment_figures` adds up. Empty and 0 in other rows.
    Column("operator", String(32), nullable=False, server_default=""),
    Column("currency", String(3), nullable=False, server_default=""),
    Column("delta", Integer, nullable=False),
    Column("amount", BigInteger, nullable=False, server_default="0"),
    Column("validation_time", BigInteger, nullable=False, server_default="0"),
    Index("ix_list_count_changes_list_name", "merchant_id", "env", "list_name").ddl_if("postgresql"),
    Index(
        "uq_list_count_changes",
        *("merchant_id", "env", "list_name", "hour", "status", "operator", "currency"),
        unique=True,
    ).ddl_if("sqlite"),
    reused_ids=True,
)

#: The payments that have a result: how many, of what amount (hundredths), by hour of creation. `validation_time`: the
#: microseconds from creation to success, of those whose status is `succeeded`. Fed by a trigger whenever a row leaves
#: `list_count_changes`. It grows by at most operators × 3 rows for each merchant and hour in which payments were made;
#: nothing is deleted.
payment_figures: Final = table(
    "payment_figures",
    merchant_column(),
    env_column(),
    Column("hour", Integer, nullable=False),
    Column("operator", String(32), nullable=False),
    Column("currency", String(3), nullable=False),
    Column("status", String(16), nullable=False),
    Column("payment_count", BigInteger, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("validation_time", BigInteger, nullable=False),
    PrimaryKeyConstraint("merchant_id", "env", "hour", "operator", "currency", "status", name="pk_payment_figures"),
    one_of("env", ENVS, "payment_figures"),
    one_of("status", ("succeeded", "failed", "refunded"), "payment_figures"),
    is_index=True,
)


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
