"""The command `guichet`. Exit codes: 0 done, 1 refused or failed, 2 wrong usage."""

import gc
import os
from typing import Final

from guichet.cli.app import app
from guichet.private_files import UMASK

#: Thresholds of the garbage collector until a process serves: above the objects that its start makes.
_AFTER_IMPORTS: Final = (250_000, 20, 20)


def main() -> None:
    os.umask(UMASK)
    # What is imported from now on stays: by default the collector looks at all of it again and again, a fifth of the
    # time that a command takes to start.
    gc.set_threshold(*_AFTER_IMPORTS)
    app()


__all__ = ["app", "main"]
