"""What happens to the hosts. Each scenario ends with both in their places; a and b may have been exchanged."""

import asyncio
import time
from typing import Final

from reliability.machines.pages import FAILOVER, PGBOUNCER, SWITCHOVER, steps
from reliability.machines.parts import PATIENCE, Parts, Scenario, first_201
from reliability.machines.two_standbys import TWO_STANDBYS
from reliability.machines.watching import OldPrimary
from reliability.processes import guichet, run_command

#: Seconds: until a person acts; for which a machine is silent; for which an old primary is watched.
_PERSON: Final = 20.0
_SILENT: Final = 120.0
_WATCHED: Final = 60.0
_STANDBY_AWAY: Final = 45.0


async def _standby_away(parts: Parts) -> None:
    hosts = parts.hosts
    hosts.network.cut(hosts.standby.machine)
    await asyncio.sleep(_STANDBY_AWAY)
    hosts.network.restore(hosts.standby.machine)
    await hosts.primary.wait_for_standby(hosts.standby.replication_name, "streaming|sync")


async def _switchover(parts: Parts) -> None:
    hosts = parts.hosts
    await hosts.run(steps(SWITCHOVER, "Before"))
    began = time.monotonic()
    await hosts.run(steps(SWITCHOVER, "Stop the primary"))
    promoted = time.monotonic()
    await hosts.run(steps(SWITCHOVER, "Promote the standby"))
    await first_201(parts, promoted)
    await hosts.run(steps(SWITCHOVER, "The old primary becomes the standby"))
    await _in_place(parts, began)


async def _powered_off(parts: Parts) -> None:
    """The machine stays silent after the promotion too: it refuses no connection."""
    hosts, old = parts.hosts, parts.hosts.primary
    hosts.network.cut(old.machine)
    await asyncio.sleep(_PERSON)
    old.lose_power()
    promoted = await _promote(parts)
    await _commands_work(parts)
    await asyncio.sleep(max(0.0, _SILENT - (time.monotonic() - promoted)))
    hosts.network.restore(old.machine)
    await old.boot()
    if old.running:
        parts.result.faults.append(f"PostgreSQL of {old.name} started by itself")
    began = time.monotonic()
    await hosts.run(steps(FAILOVER, "4. Rejoin the old primary"))
    await _in_place(parts, began)


async def _powered_off_behind_pgbouncer(parts: Parts) -> None:
    """From here on everything goes through PgBouncer and HAProxy, which find the primary by themselves."""
    await parts.hosts.run(steps(PGBOUNCER, "Setting it up"))
    await parts.app.move_behind_pgbouncer()
    await asyncio.sleep(_PERSON)
    await _powered_off(parts)


async def _fenced_on_the_app_host(parts: Parts) -> None:
    """Nobody can reach the machine; its PostgreSQL runs on, and its network comes back."""
    hosts, old = parts.hosts, parts.hosts.primary
    hosts.network.cut(old.machine)
    await asyncio.sleep(_PERSON)
    await hosts.run(steps(FAILOVER, "Neither"))
    await _promote(parts)
    await _comes_back(parts)
    began = time.monotonic()
    await hosts.run(steps(FAILOVER, "A new copy instead"))
    await _in_place(parts, began)
    hosts.exchange()  # The fence is that of the host that was lost.
    await hosts.run(steps(FAILOVER, "6. Lift the fence"))
    hosts.exchange()


async def _comes_back_unfenced(parts: Parts) -> None:
    """The mistake that the page warns of: nobody fences it."""
    hosts, old = parts.hosts, parts.hosts.primary
    hosts.network.cut(old.machine)
    await asyncio.sleep(_PERSON)
    await _promote(parts)
    await _comes_back(parts)
    await hosts.run(steps(FAILOVER, "It can be reached"))
    if old.running:
        parts.result.faults.append(f"PostgreSQL of {old.name} runs although it was fenced")
    began = time.monotonic()
    await hosts.run(steps(FAILOVER, "4. Rejoin the old primary"))
    await _in_place(parts, began)


async def _promote(parts: Parts) -> float:
    """When the promotion began."""
    promoted = time.monotonic()
    await parts.hosts.run(steps(FAILOVER, "3. Promote the standby"))
    await first_201(parts, promoted)
    return promoted


async def _comes_back(parts: Parts) -> None:
    """The old primary's network returns; nothing may be read from it or written to it."""
    watched = OldPrimary(parts.hosts.primary)
    await watched.begin()
    parts.hosts.network.restore(parts.hosts.primary.machine)
    watching = asyncio.create_task(watched.watch(_WATCHED))
    await _commands_work(parts)
    parts.result.faults += await watching


async def _commands_work(parts: Parts) -> None:
    """`guichet doctor`, and a server that is started now."""
    result = parts.result
    began = time.monotonic()
    command = ["timeout", f"{PATIENCE:g}", *guichet("doctor", "--json")]
    _, out, err = await run_command(command, parts.app.installation.environ)
    result.doctor = time.monotonic() - began
    if not out.startswith("{"):  # Its exit code is also 1 where it found something.
        result.faults.append(f"guichet doctor, after {result.doctor:.0f} s: {err[-300:] or 'no answer'}")
    began = time.monotonic()
    try:
        await parts.app.start_new_server(PATIENCE)
        result.new_server = time.monotonic() - began
    except RuntimeError as error:
        result.faults.append(f"a new guichet serve, after {time.monotonic() - began:.0f} s: {str(error)[-300:]}")


async def _in_place(parts: Parts, began: float) -> None:
    """The last steps of both pages, when the old primary has been started as a standby."""
    hosts, result = parts.hosts, parts.result
    joined = hosts.primary.replication_name
    await hosts.standby.wait_for_standby(joined, "streaming|async")
    await hosts.run(steps(FAILOVER, "5. Wait for the standby again"))
    await hosts.standby.wait_for_standby(joined, "streaming|sync")
    result.together = time.monotonic() - began
    hosts.exchange()


SCENARIOS: Final = (
    Scenario("the standby’s network is cut for 45 s", _standby_away, reads_go_on=True),
    Scenario("planned switchover", _switchover, no_request_fails=True),
    Scenario("the primary’s machine falls silent, is switched off, and comes back after two minutes", _powered_off),
    Scenario("the same, fenced on the app host only; its PostgreSQL runs on", _fenced_on_the_app_host),
    Scenario("the same, and nobody fences it: it comes back as a primary", _comes_back_unfenced),
    Scenario("the primary’s machine is switched off; through PgBouncer and HAProxy", _powered_off_behind_pgbouncer),
    *TWO_STANDBYS,
)
