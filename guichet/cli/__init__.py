"""The command `guichet`. Exit codes: 0 done, 1 refused or failed, 2 wrong usage."""

import os

from guichet.cli.app import app
from guichet.private_files import UMASK


def main() -> None:
    os.umask(UMASK)
    app()


__all__ = ["app", "main"]
