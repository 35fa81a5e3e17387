"""Who gets a refund (the number that paid), and which reopened wallets still have suspended credits."""

import sqlalchemy as sa
from alembic import op

revision = "v0006"
down_revision = "v0005"

#: Payouts of what another account collected went to the number of the request; they are repeated with the same one.
_SENT_PAYEES = """
    UPDATE refunds SET payee_number = (SELECT phone_number FROM payments WHERE payments.id = refunds.payment_id)
    WHERE status = 'pending' AND sent_at IS NOT NULL AND provider_account <> (
        SELECT provider_account FROM payments WHERE payments.id = refunds.payment_id
    )
"""
_REOPENED = """
    UPDATE wallets SET release_pending = TRUE WHERE status = 'Actif' AND EXISTS (
        SELECT 1 FROM wallet_entries AS entries
        WHERE entries.merchant_id = wallets.merchant_id AND entries.env = wallets.env
            AND entries.currency = wallets.currency AND entries.suspended
    )
"""


def upgrade() -> None:
    op.add_column("payments", sa.Column("payer_number", sa.String(15)))
    op.add_column("refunds", sa.Column("payee_number", sa.String(15)))
    op.execute(_SENT_PAYEES)
    op.add_column("wallets", sa.Column("release_pending", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.execute(_REOPENED)
    reopened = sa.text("release_pending")
    op.create_index(
        "ix_wallets_release_pending",
        "wallets",
        ["merchant_id", "env", "currency"],
        postgresql_where=reopened,
        sqlite_where=reopened,
    )
