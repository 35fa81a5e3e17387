"""The lock of an embedded database: one service at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from guichet.private_files import make_private_folder
from guichet.settings import Settings, SettingsError


@contextmanager
def lock_database(settings: Settings) -> Iterator[None]:
    """Lets only one service use a SQLite database; its processes of `--workers` count as one service. Does nothing for
    PostgreSQL.

    Raises SettingsError if another one already uses it.
    """
    if not settings.embedded:
        yield
        return
    make_private_folder(settings.sqlite_path.parent)
    with settings.sqlite_path.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SettingsError(
                "Another Guichet service already uses this embedded database. "
                "Let it have more processes (--workers), or use PostgreSQL: set GUICHET_DATABASE_URL."
            ) from None
        yield
