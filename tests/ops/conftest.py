"""What an operator of the service does, with the command itself."""

from tests.cli.conftest import cli, fresh, sqlite_cli

__all__ = ["cli", "fresh", "sqlite_cli"]
