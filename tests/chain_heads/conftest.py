"""The command on the same database, raw SQL, and a certificate authority for the receiver of heads."""

from tests.cli.conftest import fresh, sqlite_cli
from tests.ledger.conftest import cli, raw_sql
from tests.webhooks.conftest import authority

__all__ = ["authority", "cli", "fresh", "raw_sql", "sqlite_cli"]
