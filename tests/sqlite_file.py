"""The embedded database's file, opened behind Guichet's back: by the same library, for one process must not open it by
two (docs/decisions.md, "SQLite by apsw")."""

from pathlib import Path

import apsw

from tests.patience import PATIENCE


def open_sqlite(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(int(1000 * PATIENCE))
    return connection
