"""The lock of an embedded database: one service at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from guichet.private_files import make_private_folder
from guichet.settings import Settings, SettingsError


@contextmanager
def lock_database(settings: Settings) -> Iterator[bool]:
    """Lets only one service use a SQLite database; its processes of `--workers` count as one service. Does nothing for
    PostgreSQL.

    True: no process of an earlier service lives, so what those had leased is nobody's. False on PostgreSQL, where this
    cannot be known, and while processes of `--workers` outlive their parent, which was killed.
    Raises SettingsError if another service already uses it.
    """
    if not settings.embedded:
        yield False
        return
    make_private_folder(settings.sqlite_path.parent)
    with settings.sqlite_path.with_suffix(".lock").open("w") as lock:
        if not _locks(lock):
            raise SettingsError(
                "Another Guichet service already uses this embedded database. "
                "Let it have more processes (--workers), or use PostgreSQL: set GUICHET_DATABASE_URL."
            )
        with _processes_file(settings).open("w") as processes:
            is_alone = _locks(processes)
        yield is_alone


@contextmanager
def join_service(settings: Settings) -> Iterator[None]:
    """For a process of `--workers`, whose parent has locked the database: says that it lives."""
    if not settings.embedded:
        yield
        return
    with _processes_file(settings).open("w") as processes:
        fcntl.flock(processes, fcntl.LOCK_SH)
        yield


def _processes_file(settings: Settings) -> Path:
    return settings.sqlite_path.with_suffix(".processes.lock")


def _locks(file: TextIO) -> bool:
    """Whether nobody else has a lock on it. This one ends when the file is closed."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
