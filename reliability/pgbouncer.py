"""Debian's PgBouncer in transaction mode, before a PostgreSQL that is reached by a Unix socket."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qs, urlsplit

from bench.servers import free_port
from reliability.processes import ROOT

FILES: Final = ROOT / "docs" / "operations" / "ha"


def program() -> str | None:
    """Its path; None where it is not installed."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def keeps_statements() -> bool:
    """Whether the one that is installed can: 1.21 and later. Debian 12 has 1.18."""
    said = subprocess.run([str(program()), "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return tuple(map(int, said.split()[1].split(".")[:2])) >= (1, 21)


@contextmanager
def pgbouncer(server_url: str, pool: int) -> Iterator[str]:
    """The address of a bouncer that leads where `server_url` leads, by a Unix socket. It keeps prepared statements
    if it can."""
    parts, host, port = _parts(server_url)
    kept = "max_prepared_statements = 200\n" if keeps_statements() else ""
    config = (
        f"[databases]\n* = host={host} user={parts.username}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"server_login_retry = 1\nauth_type = any\nadmin_users = {parts.username}\npool_mode = transaction\n"
        f"default_pool_size = {pool}\n{kept}"
    )
    with _running(config, port, host):
        yield f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}"


@contextmanager
def documented_pgbouncer(server_url: str) -> Iterator[str]:
    """The same with the files of docs/operations/ha, as the role `guichet`."""
    parts, host, port = _parts(server_url)
    config = (FILES / "pgbouncer.ini").read_text(encoding="utf-8")
    for documented, here in {
        "host=127.0.0.1 port=5000 dbname=guichet": f"host={host} dbname={parts.path[1:]}",
        "listen_port = 6432": f"listen_port = {port}",
    }.items():
        assert documented in config
        config = config.replace(documented, here)
    with _running(config, port, host):
        yield f"postgresql://guichet:change-me@127.0.0.1:{port}/guichet"


def _parts(server_url: str) -> tuple[SplitResult, Path, int]:
    """Of the server's address, its socket's folder, and a free port."""
    parts = urlsplit(server_url)
    (host,) = parse_qs(parts.query)["host"]
    return parts, Path(host), free_port()


@contextmanager
def _running(config: str, port: int, host: Path) -> Iterator[None]:
    if (installed := program()) is None:
        raise RuntimeError("pgbouncer is not installed")
    with tempfile.TemporaryDirectory(prefix="guichet-bouncer-") as folder:
        Path(folder).chmod(0o755)
        file = Path(folder) / "pgbouncer.ini"
        file.write_text(config.replace("/etc/pgbouncer", folder))
        shutil.copy(FILES / "userlist.txt", folder)
        file.chmod(0o644)
        # It refuses to be root, and only the server's own user may enter the socket's folder.
        user = ["-u", host.owner()] if os.getuid() == 0 else []
        process = subprocess.Popen([installed, *user, "-q", str(file)], stderr=subprocess.DEVNULL)
        try:
            _await(process, port)
            yield
        finally:
            process.kill()  # 1.23 and later would wait until every client has left.
            process.wait(10)


def _await(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, "pgbouncer ended"
        assert time.monotonic() < deadline, "pgbouncer did not start"
        time.sleep(0.05)
