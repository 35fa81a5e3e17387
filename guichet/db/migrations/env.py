"""Alembic's environment: runs the migrations on the connection that `db/migrate.py` opened."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
