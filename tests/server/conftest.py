"""The real command, for what only processes show."""

from tests.cli.conftest import cli, sqlite_cli

__all__ = ["cli", "sqlite_cli"]
