"""Processes of the command are forked: a trial starts dozens."""

from tests.cli.forked import forked_commands

__all__ = ["forked_commands"]
