"""A merchant's file: notes and documents of the staff. Indexes for looking through the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "v0025_admits_v0016"
down_revision = "v0024_admits_v0016"


def upgrade() -> None:
    pending = sa.text("status = 'pending'")
    op.create_index("ix_merchants_pending", "merchants", ["id"], postgresql_where=pending, sqlite_where=pending)
    op.create_index("ix_audit_log_actor", "audit_log", ["actor", "number"])
    op.create_index("ix_audit_log_action", "audit_log", ["action", "number"])
    _notes()
    _documents()


def _notes() -> None:
    op.create_table(
        "merchant_notes",
        _id(),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_merchant_notes"),
        _merchant("merchant_notes"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_merchant_notes_merchant_id", "merchant_notes", ["merchant_id", "id"])


def _documents() -> None:
    types = "('application/pdf', 'image/jpeg', 'image/png')"
    op.create_table(
        "merchant_documents",
        _id(),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("media_type", sa.String(32), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("uploaded_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_merchant_documents"),
        _merchant("merchant_documents"),
        sa.UniqueConstraint("merchant_id", "sha256", name="uq_merchant_documents_sha256"),
        sa.CheckConstraint(f"media_type IN {types}", name="ck_merchant_documents_media_type"),
        sa.CheckConstraint("size BETWEEN 1 AND 5242880", name="ck_merchant_documents_size"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "merchant_document_chunks",
        sa.Column("document_id", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("document_id", "number", name="pk_merchant_document_chunks"),
        sa.ForeignKeyConstraint(
            ["document_id"], ["merchant_documents.id"], name="fk_merchant_document_chunks_document_id"
        ),
    )


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(), nullable=False)


def _merchant(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=f"fk_{table}_merchant_id")
