"""Metrics of real processes: several servers, a worker, and a port that is taken."""

import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from tests.cli.conftest import Cli, until
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.server.metrics_reader import TOKEN, fetch, responds, value


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_every_server_process_has_its_metrics_port(cli: Cli) -> None:
    """`serve --workers 2`: one port each, from GUICHET_METRICS_PORT on; a token alone is refused there."""
    refusal = cli.having(GUICHET_METRICS_TOKEN=TOKEN)("serve", "--workers", 2, "--port", free_port()).refusal
    assert "GUICHET_METRICS_PORT" in refusal
    port = free_port()
    with cli.having(GUICHET_METRICS_PORT=str(port)).running("serve", "--workers", "2") as server:
        addresses = [f"http://127.0.0.1:{port + each}/metrics" for each in (0, 1)]
        until(lambda: all(responds(address) for address in addresses))
        for address in addresses:
            assert value(fetch(address), "guichet_worker_turns_total", loop="housekeeping") >= 0
        with urllib.request.urlopen(f"{server.address}/healthz", timeout=PATIENCE):
            """Served by one of the two."""
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{server.address}/metrics", timeout=PATIENCE)
        server.stop()


def test_a_worker_serves_metrics(sqlite_cli: Cli) -> None:
    port = free_port()
    address = f"http://127.0.0.1:{port}/metrics"
    with sqlite_cli.having(GUICHET_METRICS_PORT=str(port)).start("worker") as worker:
        until(lambda: worker.poll() is not None or responds(address))

        def turns() -> float:
            return value(fetch(address), "guichet_worker_turns_total", loop="housekeeping")

        began = turns()
        until(lambda: turns() > began)
        assert value(fetch(address), "guichet_worker_failures_total", loop="housekeeping", what="turn") == 0
        worker.terminate()
        assert worker.wait(timeout=PATIENCE) == 0


def test_a_metrics_port_in_use_stops_the_start(sqlite_cli: Cli) -> None:
    port = free_port()
    squatting = (
        f"import socket, time; s = socket.create_server(('127.0.0.1', {port})); print(flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", squatting], stdout=subprocess.PIPE) as squatter:
        assert squatter.stdout is not None
        squatter.stdout.readline()
        refusal = sqlite_cli.having(GUICHET_METRICS_PORT=str(port))("serve", "--port", free_port()).refusal
        assert refusal == f"GUICHET_METRICS_PORT: cannot listen on 127.0.0.1, port {port}: it is already in use."
        squatter.kill()
