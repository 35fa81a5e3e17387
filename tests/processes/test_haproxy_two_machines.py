"""docs/operations/ha/haproxy-two-machines.cfg, with a real primary and its standby: it leads to the primary, stays
there, and follows a promotion."""

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import asyncpg
import pytest

from reliability.processes import ROOT
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.processes.failover import Cluster, cluster, run_sql, running, server_folder

CONFIG: Final = (ROOT / "docs" / "operations" / "ha" / "haproxy-two-machines.cfg").read_text(encoding="utf-8")
#: Seconds that a check may take here; the file has five.
CHECK_TIMEOUT: Final = 1.0


@contextmanager
def haproxy(folder: Path, first: int, second: int) -> Iterator[int]:
    """The port on which it leads to the primary. `first`, `second`: the ports of the servers, in the file's order."""
    program = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("LOUD: haproxy is not installed, its check of who the primary is is not tested")
    port, text = free_port(), CONFIG
    for documented, here in {
        "timeout check 5s": f"timeout check {CHECK_TIMEOUT:g}s",
        "bind 127.0.0.1:5000": f"bind 127.0.0.1:{port}",
        "10.0.0.11:5432": f"127.0.0.1:{first}",
        "10.0.0.12:5432": f"127.0.0.1:{second}",
    }.items():
        assert documented in text
        text = text.replace(documented, here)
    (folder / "haproxy.cfg").write_text(text, encoding="utf-8")
    process = subprocess.Popen([program, "-db", "-f", folder / "haproxy.cfg"], stdout=subprocess.DEVNULL)
    try:
        yield port
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)


@pytest.fixture
async def databases() -> AsyncIterator[Cluster]:
    with server_folder() as folder:
        (folder / "template").mkdir()
        async with running(folder / "template") as template:
            await template.create_database("guichet")
            await run_sql(template, "CREATE ROLE guichet_check LOGIN CONNECTION LIMIT 20")
        async with cluster(folder / "template", folder) as started:
            yield started


async def is_standby(port: int) -> bool | None:
    """What answers behind HAProxy; None when nothing does."""
    try:
        connection = await asyncpg.connect(f"postgresql://postgres@127.0.0.1:{port}/postgres", timeout=10)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return None
    try:
        return bool(await connection.fetchval("SELECT pg_is_in_recovery()"))
    finally:
        connection.terminate()


async def reaches_the_primary(port: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while await is_standby(port) is not False:
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("primary_first", [True, False])
async def test_it_leads_to_the_primary_and_stays_there(databases: Cluster, tmp_path: Path, primary_first: bool) -> None:
    """A check that waits for more than the answer ends by its timeout: then nothing led to the primary any more."""
    ports = databases.ports if primary_first else databases.ports[::-1]
    with haproxy(tmp_path, *ports) as port:
        await reaches_the_primary(port)
        deadline = time.monotonic() + 4 * CHECK_TIMEOUT
        while time.monotonic() < deadline:
            assert await is_standby(port) is False
            await asyncio.sleep(0.1)


async def test_it_follows_a_promotion(databases: Cluster, tmp_path: Path) -> None:
    with haproxy(tmp_path, *databases.ports) as port:
        await reaches_the_primary(port)
        await databases.first.kill()
        await databases.promote()
        await reaches_the_primary(port)
