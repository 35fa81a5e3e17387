"""How SQLite is configured, once for the whole process."""

import subprocess
import sys

PROGRAM = """
import apsw
{opened}
import guichet.db.sqlite.database
connection = apsw.Connection(":memory:")
connection.execute("CREATE TABLE kept (x)")
print(apsw.status(apsw.SQLITE_STATUS_MEMORY_USED)[0] == 0)
{used}
"""


def test_memory_is_counted_only_where_others_had_a_connection_open() -> None:
    assert _printed("", "") == ["True"]
    opened = 'other = apsw.Connection(":memory:"); other.execute("CREATE TABLE kept (x)")'
    used = 'other.execute("INSERT INTO kept VALUES (7)"); print(other.execute("SELECT x FROM kept").fetchall())'
    assert _printed(opened, used) == ["False", "[(7,)]"]


def _printed(opened: str, used: str) -> list[str]:
    program = PROGRAM.format(opened=opened, used=used)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()
