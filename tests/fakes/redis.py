"""A real Redis server of the test's own."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.ports import free_port


class RedisServer:
    """On a free port; a test may stop it and start it again."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = ["redis-server", "--port", str(self.port), "--save", "", "--dir", str(self._folder)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("redis-server did not start")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def running_redis(folder: Path) -> Iterator[RedisServer]:
    """Skips the test, loudly, where Redis is not installed."""
    if shutil.which("redis-server") is None:
        pytest.skip("LOUD: redis-server is not installed, the shared rate limit is not tested")
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
