"""The front machine: HAProxy, PgBouncer and Redis, with the files of docs/operations/ha."""

import shutil
from pathlib import Path
from typing import Final

from reliability.ha.cluster import FILES, USER
from reliability.processes import ManagedProcess, clean_environ

#: As in docs/operations/ha/haproxy.cfg and pgbouncer.ini.
DIRECT_PORT: Final = 5000
API: Final = "http://127.0.0.1:8000"


class Front:
    def __init__(self, folder: Path, logs: Path) -> None:
        environ = {**clean_environ(), "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        self._folder = folder
        self.haproxy = ManagedProcess(
            "HAProxy", ["haproxy", "-db", "-f", str(FILES / "haproxy.cfg")], environ, logs / "haproxy.log"
        )
        self.pgbouncer = ManagedProcess(
            "PgBouncer",
            [
                "setpriv",
                f"--reuid={USER}",
                f"--regid={USER}",
                "--clear-groups",
                "pgbouncer",
                str(folder / "pgbouncer.ini"),
            ],
            environ,
            logs / "pgbouncer.log",
        )
        self.redis = ManagedProcess(
            "Redis",
            ["redis-server", "--bind", "127.0.0.1", "--port", "6379", "--save", "", "--dir", str(folder)],
            environ,
            logs / "redis.log",
        )

    @property
    def processes(self) -> list[ManagedProcess]:
        return [self.haproxy, self.pgbouncer, self.redis]

    async def start(self) -> None:
        self._folder.mkdir(parents=True)
        config = (FILES / "pgbouncer.ini").read_text(encoding="utf-8")
        (self._folder / "pgbouncer.ini").write_text(config.replace("/etc/pgbouncer", str(self._folder)))
        shutil.copy(FILES / "userlist.txt", self._folder)
        for process in self.processes:
            await process.start()
