"""The app host: two `guichet serve` behind HAProxy with TLS, a worker, Redis and the simulator."""

import asyncio
import re
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Final

from reliability.installation import Installation
from reliability.machines.hosts import DATABASES
from reliability.machines.pages import OPERATIONS
from reliability.network_trial import SYSTEM_PATH
from reliability.processes import ManagedProcess, clean_environ, guichet, run_command

_NAME: Final = "pay.example.com"
_HTTPS_PORT: Final = 25443
#: Where the providers send callbacks: the same proxy without TLS, whose authority the simulator does not know.
_HTTP_PORT: Final = 25080
API: Final = f"https://{_NAME}:{_HTTPS_PORT}"
SERVER_PORTS: Final = [25001, 25002]
_NEW_SERVER_PORT: Final = 25003
_SIMULATOR_PORT: Final = 25900
RECEIVER_PORT: Final = 25950
#: Seconds until the proxy has noticed that a server is ready again.
_NOTICED: Final = 3.0
#: Seconds in which all programs must have started together.
_PATIENCE: Final = 180.0


class App:
    """Everything here runs beside the trial itself, on the front machine."""

    def __init__(self, folder: Path, logs: Path, hosts_file: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        lines = (OPERATIONS / "two-hosts" / "guichet.env").read_text(encoding="utf-8").splitlines()
        variables = dict(line.split("=", 1) for line in lines if line.startswith("GUICHET_"))
        public_url = f"http://127.0.0.1:{_HTTP_PORT}"
        self.installation = Installation(
            folder / "guichet", _SIMULATOR_PORT, SERVER_PORTS, public_url=public_url, variables=variables
        )
        environ = {**clean_environ(), "PATH": SYSTEM_PATH}
        self.simulator = self.installation.simulator()
        self.servers = [self.installation.server(port, "--no-worker") for port in SERVER_PORTS]
        self.worker = self.installation.worker(1)
        self._new_server = self.installation.server(_NEW_SERVER_PORT, "--no-worker")
        haproxy = ["haproxy", "-db", "-f", str(folder / "haproxy.cfg")]
        self._haproxy = ManagedProcess("HAProxy", haproxy, environ, logs / "haproxy.log")
        redis = ["redis-server", "--bind", "127.0.0.1", "--port", "6379", "--save", "", "--dir", str(folder)]
        self._redis = ManagedProcess("Redis", redis, environ, logs / "redis.log")
        to_primary = ["haproxy", "-db", "-f", str(folder / "haproxy-two-machines.cfg")]
        self._haproxy_to_primary = ManagedProcess("HAProxy to the primary", to_primary, environ, logs / "primary.log")
        as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        pgbouncer = [*as_postgres, "pgbouncer", str(folder / "pgbouncer.ini")]
        self._pgbouncer = ManagedProcess("PgBouncer", pgbouncer, environ, logs / "pgbouncer.log")
        with hosts_file.open("a") as hosts:
            hosts.write(f"127.0.0.1 {_NAME}\n")

    @property
    def tls(self) -> ssl.SSLContext:
        """What the merchants trust."""
        return ssl.create_default_context(cafile=str(self._folder / "tls.crt"))

    async def start(self) -> None:
        _make_certificate(self._folder)
        (self._folder / "haproxy.cfg").write_text(_proxy_file(self._folder / "tls.pem"), encoding="utf-8")
        await self._redis.start()
        await self._haproxy.start()
        code, out, err = await run_command(guichet("migrate"), self.installation.environ)
        if code != 0:
            raise RuntimeError(f"guichet migrate: {out}{err}")
        await self.simulator.start_and_wait()
        for process in (*self.servers, self.worker):
            await process.start()
        for process in (*self.servers, self.worker):
            await process.wait_until_ready(_PATIENCE)

    async def stop(self) -> None:
        for process in (*self.servers, self.worker):
            await process.stop()

    async def move_behind_pgbouncer(self) -> None:
        """As docs/operations/pgbouncer.md says, one process after the other."""
        files = OPERATIONS / "ha"
        config = (files / "haproxy-two-machines.cfg").read_text(encoding="utf-8")
        for documented, address in (("10.0.0.11", DATABASES["db-a"]), ("10.0.0.12", DATABASES["db-b"])):
            config = config.replace(documented, address)
        (self._folder / "haproxy-two-machines.cfg").write_text(config, encoding="utf-8")
        bouncer = (files / "pgbouncer.ini").read_text(encoding="utf-8")
        (self._folder / "pgbouncer.ini").write_text(bouncer.replace("/etc/pgbouncer", str(self._folder)))
        shutil.copy(files / "userlist.txt", self._folder)
        await self._haproxy_to_primary.start()
        await self._pgbouncer.start()
        lines = (files / "guichet.env").read_text(encoding="utf-8").splitlines()
        self.installation.variables |= dict(line.split("=", 1) for line in lines if line.startswith("GUICHET_"))
        for number, port in enumerate(SERVER_PORTS):
            await self.servers[number].stop()
            self.servers[number] = self.installation.server(port, "--no-worker")
            await self.servers[number].start()
            await self.servers[number].wait_until_ready(_PATIENCE)
            await asyncio.sleep(_NOTICED)
        self._new_server = self.installation.server(_NEW_SERVER_PORT, "--no-worker")
        await self.worker.stop()
        self.worker = self.installation.worker(1)
        await self.worker.start()
        await self.worker.wait_until_ready(_PATIENCE)

    async def start_new_server(self, seconds: float) -> None:
        """As systemd after a restart. Raises RuntimeError when it is not ready in time."""
        await self._new_server.start()
        try:
            await self._new_server.wait_until_ready(seconds)
        finally:
            await self._new_server.kill()


def _proxy_file(certificate: Path) -> str:
    """What leads to Guichet in docs/operations/ha/haproxy.cfg, with TLS, our ports, and as many servers as we have."""
    text = (OPERATIONS / "ha" / "haproxy.cfg").read_text(encoding="utf-8")
    head, _, rest = text.partition("# PostgreSQL's primary")
    ours = rest[rest.index("listen guichet") :]
    ours = re.sub(r"^ +server serve-3 .*\n", "", ours, flags=re.MULTILINE)
    for number, port in enumerate(SERVER_PORTS, 1):
        ours = ours.replace(f"127.0.0.1:800{number}", f"127.0.0.1:{port}")
    bind = f"bind 127.0.0.1:{_HTTPS_PORT} ssl crt {certificate}\n    bind 127.0.0.1:{_HTTP_PORT}"
    return head + ours.replace("bind 127.0.0.1:8000", bind)


def _make_certificate(folder: Path) -> None:
    """For the merchants' side; the authority is the certificate itself."""
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", f"/CN={_NAME}", "-addext", f"subjectAltName=DNS:{_NAME}",
        "-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt"),
    ]  # fmt: skip
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    (folder / "tls.pem").write_text((folder / "tls.crt").read_text() + (folder / "tls.key").read_text())
