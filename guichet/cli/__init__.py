"""The command `guichet`. Exit codes: 0 done, 1 refused or failed, 2 wrong usage."""

from guichet.cli.app import app


def main() -> None:
    app()


__all__ = ["app", "main"]
