"""`guichet demo` in a folder of its own: what the generated clients talk to."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


@dataclass(frozen=True)
class Demo:
    """`url` is the address of the service, `key` its demo merchant's test key."""

    url: str
    key: str

    def document(self) -> bytes:
        """The OpenAPI document as it is served."""
        with urllib.request.urlopen(f"{self.url}/openapi.json", timeout=30) as answer:
            content: bytes = answer.read()
            return content

    def payment(self, external_id: str) -> Any:
        """The payment of this `external_id`."""
        asked = urllib.request.Request(
            f"{self.url}/v1/payments/{external_id}", headers={"Authorization": f"Bearer {self.key}"}
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return json.load(answer)["data"]


@contextmanager
def running_demo(port: int) -> Iterator[Demo]:
    """Serves on this port of loopback, on a new SQLite database."""
    with TemporaryDirectory() as home:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GUICHET_")}
        environment = {**inherited, "GUICHET_HOME": home, "GUICHET_RATE_LIMIT": "0", "GUICHET_LOG_LEVEL": "warning"}
        command = [sys.executable, "-m", "guichet", "demo", "--port", str(port)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                if not any("Ctrl-C" in line for line in iter(process.stdout.readline, "")):
                    raise RuntimeError("guichet demo did not start; what it said stands above")
                keys = json.loads(Path(home, "demo.json").read_text())["keys"]
                yield Demo(f"http://127.0.0.1:{port}", keys["test"])
            finally:
                process.kill()
