"""The recommended form of docs/operations/postgresql.md: a second standby joins on a host of its own, one of the two
may be away, and after the loss of the primary the one that received more is promoted."""

import asyncio
import signal
import time
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from reliability.machines.hosts import DatabaseHost, Hosts
from reliability.machines.pages import FAILOVER, SETUP, Step, steps
from reliability.machines.parts import Parts, Scenario, first_201

#: Seconds: for which a standby is away, until a person acts, and for which one standby misses payments.
_AWAY: Final = 45.0
_PERSON: Final = 20.0
_BEHIND: Final = 5.0
_PATIENCE: Final = 60.0
_STATES: Final = (
    "SELECT string_agg(application_name || '|' || state || '|' || sync_state, ' ' ORDER BY application_name) "
    "FROM pg_stat_replication"
)
_POSITION: Final = "SELECT greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'::pg_lsn"


async def _one_joins(parts: Parts) -> None:
    """All that the page says for db-b, for db-c."""
    hosts, third = parts.hosts, parts.hosts.databases["db-c"]
    for machine in hosts.machines.values():
        with machine.own_path("/etc/hosts").open("a") as file:
            file.write("10.77.0.13 db-c.internal\n")
    await third.install()
    hosts.copy_certificates()
    await hosts.primary.query("SELECT pg_create_physical_replication_slot('guichet_c', true)")
    await hosts.run([_for_db_c(each) for each in steps(SETUP, "Setting it up") if "db-b" in each.machines])
    await _both_in_quorum(hosts, third, {"async", "potential", "sync"})
    await hosts.run(steps(SETUP, "Two standbys"))
    await _both_in_quorum(hosts, third)


async def _one_is_killed(parts: Parts) -> None:
    hosts, third = parts.hosts, parts.hosts.databases["db-c"]
    third.machine.send_signal(signal.SIGKILL, "postgres")
    await asyncio.sleep(_AWAY)
    await third.checked("pg_ctlcluster", "15", "main", "start")
    await _both_in_quorum(hosts, third)


async def _primary_is_lost(parts: Parts) -> None:
    """While db-c misses what is paid: a person who promoted it would lose that."""
    hosts, old, third = parts.hosts, parts.hosts.primary, parts.hosts.databases["db-c"]
    hosts.network.cut(third.machine)
    await asyncio.sleep(_BEHIND)
    hosts.network.cut(old.machine)
    old.lose_power()
    hosts.network.restore(third.machine)
    await asyncio.sleep(_PERSON)
    stop, promote, follow = steps(FAILOVER, "With two standbys")
    promoted = time.monotonic()
    await hosts.run([stop])
    ahead = int(await hosts.standby.query(_POSITION) or 0) - int(await third.query(_POSITION) or 0)
    if ahead <= 0:
        parts.result.faults.append(f"db-c is not behind: {ahead} bytes")
    await hosts.run([promote, follow])
    await first_201(parts, promoted)
    hosts.network.restore(old.machine)
    await old.boot()
    if old.running:
        parts.result.faults.append(f"PostgreSQL of {old.name} started by itself")
    began = time.monotonic()
    await hosts.run(steps(FAILOVER, "4. Rejoin the old primary"))
    hosts.exchange()
    await _both_in_quorum(hosts, third)
    parts.result.together = time.monotonic() - began


def _for_db_c(step: Step) -> Step:
    if "/etc/hosts" in step.commands:
        return replace(step, machines=("db-c",))
    commands = step.commands.replace("db-b", "db-c").replace("guichet_b", "guichet_c").replace("s/THIS/b/", "s/THIS/c/")
    return replace(step, machines=("db-c",), commands=commands)


async def _both_in_quorum(hosts: Hosts, third: DatabaseHost, states: Collection[str] = ("quorum",)) -> None:
    """Waits until the primary sends to both, and counts them in this way."""
    names = {each.replication_name for each in (hosts.standby, third)}
    deadline, found = time.monotonic() + _PATIENCE, ""
    while time.monotonic() < deadline:
        found = await hosts.primary.query(_STATES) or ""
        rows = [each.split("|") for each in found.split()]
        if {each[0] for each in rows if each[1] == "streaming" and each[2] in states} == names:
            return
        await asyncio.sleep(0.1)
    raise RuntimeError(f"{hosts.primary.name} does not see both standbys, but {found!r}")


TWO_STANDBYS: Final = (
    Scenario("two standbys; the second one joins", _one_joins),
    Scenario("two standbys; one is killed, and started again after 45 s", _one_is_killed, no_request_fails=True),
    Scenario("two standbys; the primary is lost while one lacks what was paid", _primary_is_lost),
)
