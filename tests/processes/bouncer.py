"""Debian's PgBouncer in transaction mode, before the test's PostgreSQL."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

#: Fewer connections than requests at once, so that every connection serves many clients in turn.
POOL = 3


@contextmanager
def pgbouncer(server_url: str) -> Iterator[str]:
    """The address of a bouncer that leads where `server_url` leads, by a Unix socket."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("LOUD: pgbouncer is not installed, Guichet behind it is not tested")
    parts = urlsplit(server_url)
    (host,) = parse_qs(parts.query)["host"]
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = int(probe.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="guichet-bouncer-") as folder:
        Path(folder).chmod(0o755)
        config = Path(folder) / "pgbouncer.ini"
        config.write_text(
            f"[databases]\n* = host={host} user={parts.username}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            f"server_login_retry = 1\nauth_type = any\npool_mode = transaction\ndefault_pool_size = {POOL}\n"
        )
        config.chmod(0o644)
        # It refuses to be root, and only the server's own user may enter the socket's folder.
        user = ["-u", Path(host).owner()] if os.getuid() == 0 else []
        process = subprocess.Popen([program, *user, "-q", str(config)], stderr=subprocess.DEVNULL)
        try:
            _await(process, port)
            yield f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}"
        finally:
            process.terminate()
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
