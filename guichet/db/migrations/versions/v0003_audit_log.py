"""The audit log of what people do: append-only, in a hash chain."""

import sqlalchemy as sa
from alembic import op

revision = "v0003"
down_revision = "v0002"


def upgrade() -> None:
    op.create_table(
        "audit_log",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("os_user", sa.Text(), nullable=False),
        sa.Column("action", sa.String(48), nullable=False),
        sa.Column("subject_type", sa.String(32), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("merchant_id", sa.BigInteger()),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("before", sa.Text(), nullable=False),
        sa.Column("after", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit_log"),
    )
    op.create_index("ix_audit_log_subject", "audit_log", ["subject", "number"])
    head = op.create_table(
        "audit_log_head",
        sa.Column("singleton", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.CheckConstraint("singleton = 1", name="ck_audit_log_head_singleton"),
        sa.PrimaryKeyConstraint("singleton", name="pk_audit_log_head"),
    )
    op.bulk_insert(head, [{"singleton": 1, "number": 0, "digest": "0" * 64}])
    _refuse_changes()


def _refuse_changes() -> None:
    refusal = "the audit log is append-only"
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION refuse_audit_log_change() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{refusal}' USING ERRCODE = 'restrict_violation', "
            "CONSTRAINT = 'audit_log_is_append_only'; END $$"
        )
        op.execute(
            "CREATE TRIGGER refuse_audit_log_change BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_log_change()"
        )
    else:
        for event in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER refuse_audit_log_{event.lower()} BEFORE {event} ON audit_log "
                f"BEGIN SELECT RAISE(ABORT, '{refusal}'); END"
            )
