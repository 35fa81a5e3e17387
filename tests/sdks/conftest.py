"""One `guichet demo` for all libraries, each of which reaches it through a proxy of its own."""

import http.client
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.child import Child
from tests.cli.demonstration import demonstrated
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.sdks.faulty_proxy import FaultyProxy, faulty_proxy
from tests.sdks.packages import DRIVERS, Installed, install, missing

__all__ = ["demonstrated"]

#: Name → library, arguments of its driver, the address that the service sees.
LIBRARIES = {
    "python": ("python", (), "127.0.0.2"),
    "python, asynchronous": ("python", ("--async",), "127.0.0.3"),
    "typescript": ("typescript", (), "127.0.0.4"),
    "php": ("php", (), "127.0.0.5"),
}
DRIVERS_OF = {"python": "driver.py", "typescript": "driver.mjs", "php": "driver.php"}


@dataclass
class DemoServer:
    """`guichet demo`, which can be killed and started again, and the receiver of its webhooks."""

    home: Path
    port: int
    variables: dict[str, str] = field(default_factory=dict)
    process: Child | None = None
    received: list[tuple[bytes, dict[str, str]]] = field(default_factory=list)
    receiver: str = ""
    secret: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def keys(self) -> dict[str, str]:
        keys: dict[str, str] = json.loads((self.home / "demo.json").read_text())["keys"]
        return keys

    def start(self) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GUICHET_")}
        own = {"GUICHET_HOME": str(self.home), "GUICHET_LOG_LEVEL": "error", **self.variables}
        log = self.home / "log"
        self.process = Child(["demo", "--port", str(self.port)], {**inherited, **own}, self.home, err=log)
        assert self.process.stdout is not None
        assert any("Ctrl-C" in line for line in iter(self.process.stdout.readline, "")), "guichet demo did not start"

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def call(self, method: str, path: str, body: object = None, source: str = "127.0.0.1") -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE, source_address=(source, 0))
        headers = {"Authorization": f"Bearer {self.keys['test']}"}
        connection.request(method, f"/v1{path}", None if body is None else json.dumps(body), headers)
        try:
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


@pytest.fixture
def server(tmp_path: Path, demonstrated: Path) -> Iterator[DemoServer]:
    demo = DemoServer(shutil.copytree(demonstrated, tmp_path / "demo"), free_port())

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            demo.received.append((body, dict(self.headers)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    demo.start()
    try:
        demo.receiver = f"http://127.0.0.1:{receiver.server_port}/hook"
        demo.secret = demo.call("PUT", "/webhooks/endpoint", {"url": demo.receiver})["data"]["secret"]
        yield demo
    finally:
        demo.kill()
        receiver.shutdown()
        receiver.server_close()


@dataclass
class Library:
    """A driver that runs in its project, and its proxy."""

    name: str
    language: str
    proxy: FaultyProxy
    process: subprocess.Popen[str]

    def call(self, call: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the driver of {self.name} ended: what it said stands above"
        said: dict[str, Any] = json.loads(line)
        return said


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, Future[Installed]]:
    """The projects, made beside each other while the service starts."""
    languages = [language for language in ("typescript", "php", "python") if not missing(language)]
    with ThreadPoolExecutor() as pool:
        return {each: pool.submit(install, each, _made(tmp_path / each)) for each in languages}


@pytest.fixture
def libraries(server: DemoServer, installed: dict[str, Future[Installed]]) -> Iterator[dict[str, Library]]:
    with ExitStack() as stack:
        running = {}
        for name, (language, arguments, source) in LIBRARIES.items():
            if language not in installed:
                continue
            project = installed[language].result()
            proxy = stack.enter_context(faulty_proxy(server.port, source))
            driver = project.folder / DRIVERS_OF[language]
            driver.write_text((DRIVERS / driver.name).read_text(encoding="utf-8"), encoding="utf-8")
            given = ["vendor/autoload.php"] if language == "php" else list(arguments)
            process = subprocess.Popen(
                [*project.run, str(driver), *given],
                cwd=project.folder,
                env={**os.environ, **project.environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(process)  # Its input ends, then so does it.
            running[name] = Library(name, language, proxy, process)
        yield running


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    return folder


def require(language: str) -> None:
    """Skips, loudly; GUICHET_REQUIRE_CLIENTS=1 fails instead."""
    if lacking := missing(language):
        message = f"LOUD: sdks/{language} was NOT tested, {', '.join(lacking)} is not installed"
        if os.environ.get("GUICHET_REQUIRE_CLIENTS"):
            pytest.fail(message)
        pytest.skip(message)
