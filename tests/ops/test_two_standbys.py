"""Two standbys, by the blocks of docs/operations/postgresql.md and failover.md: one may be away, and of both the one
that received more is promoted."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from reliability.machines.hosts import MOUNT_POINTS, Hosts, network, prepare
from reliability.machines.pages import FAILOVER, SETUP, Step, steps
from reliability.network_trial import _made

_STREAMING: Final = (
    "SELECT string_agg(application_name || '|' || state || '|' || sync_state, ' ' ORDER BY 1) FROM pg_stat_replication"
)
_COUNT: Final = "SELECT count(*) FROM paid"
_PAY: Final = "SET statement_timeout = '5s'; INSERT INTO paid DEFAULT VALUES"


@pytest.fixture
async def hosts() -> AsyncIterator[Hosts]:
    if not Path("/usr/lib/postgresql/15/bin/postgres").exists() or shutil.which("pg_createcluster") is None:
        pytest.skip("LOUD: Debian's postgresql-15 is not installed, two standbys are not tested")
    if os.getuid() != 0 or Path("/run/systemd/system").exists():
        pytest.skip("LOUD: two standbys need root, and no systemd that starts PostgreSQL")
    with tempfile.TemporaryDirectory(prefix="guichet-standbys-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)  # The servers belong to another user.
        made_folders = [each for wanted in MOUNT_POINTS for each in _made(Path(wanted))]
        made = network(f"gt{os.getpid()}", folder)
        try:
            prepare(made, folder)
            made.create()
            yield Hosts(made, folder / "pages.log")
        finally:
            made.remove()
            for each in reversed(made_folders):
                each.rmdir()


def for_db_c(step: Step) -> Step:
    """What the page says for db-b, on db-c."""
    return replace(
        step,
        machines=("db-c",),
        commands=step.commands.replace("db-b", "db-c")
        .replace("guichet_b", "guichet_c")
        .replace("s/THIS/b/", "s/THIS/c/"),
    )


async def set_up(hosts: Hosts) -> None:
    for host in hosts.databases.values():
        await host.install()
    for step in steps(SETUP, "Setting it up"):
        if step.commands.startswith("cd /root\n"):
            hosts.copy_certificates()
        if "synchronous_standby_names" not in step.commands:
            for each in [step, *([for_db_c(step)] if "db-b" in step.machines else [])]:
                await hosts.run([each])
        if "guichet_b', true" in step.commands:
            await hosts.primary.query("SELECT pg_create_physical_replication_slot('guichet_c', true)")
    with_three = steps(SETUP, "Two standbys")
    for name in hosts.machines:
        with hosts.machines[name].own_path("/etc/hosts").open("a") as file:
            file.write("10.77.0.13 db-c.internal\n")
    await hosts.run(with_three)
    await state(hosts, "db-a", "guichet_b|streaming|quorum guichet_c|streaming|quorum")
    await hosts.primary.query("CREATE TABLE paid (id bigint GENERATED ALWAYS AS IDENTITY)")


async def state(hosts: Hosts, primary: str, wanted: str) -> None:
    async with asyncio.timeout(40):
        while await hosts.databases[primary].query(_STREAMING) != wanted:
            await asyncio.sleep(0.1)


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_one_may_be_away_and_the_further_one_is_promoted(hosts: Hosts) -> None:
    await set_up(hosts)
    a, b, c = (hosts.databases[name] for name in ("db-a", "db-b", "db-c"))
    hosts.network.cut(c.machine)  # Whatever is paid now is on db-b alone.
    for _ in range(5):
        assert await a.query(_PAY) is not None, "a payment waited for an absent standby"
    hosts.network.cut(a.machine)
    a.lose_power()
    hosts.network.restore(c.machine)

    stop, promote, follow = steps(FAILOVER, "With two standbys")
    await hosts.run([stop])
    position = "SELECT greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())"
    further, other = await b.query(position), await c.query(position)
    assert await b.query(f"SELECT '{further}'::pg_lsn > '{other}'::pg_lsn") == "t"
    await hosts.run([promote])
    assert await b.query(_PAY) is None, "a payment was acknowledged by one host alone"
    await hosts.run([follow])
    await state(hosts, "db-b", "guichet_c|streaming|quorum")
    assert await b.query(_PAY) is not None
    assert await c.query(_COUNT) == "7", "one that nobody was told of, and all six that were acknowledged"
