"""Alembic's environment: runs the migrations on the connection that `db/migrate.py` opened."""

from alembic import context

from guichet.db.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
