"""The faults of the trial. Each is injected, and repaired as systemd or a person would do it."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from reliability.ha.cluster import Cluster, Node
from reliability.ha.front import Front
from reliability.ha.service import Service
from reliability.ha.witness import Witness
from reliability.network import Network
from reliability.supervisor import Supervisor

#: Seconds after which a machine or one of its programs is started again.
_STAYS_DOWN: Final = 5.0
_STOPPED: Final = 60.0
_CUT: Final = 45.0


@dataclass
class Parts:
    """Everything that a fault can hit. `lost`: what was acknowledged by a machine that was not the primary any more."""

    network: Network
    cluster: Cluster
    front: Front
    service: Service
    supervisor: Supervisor = field(default_factory=Supervisor)
    lost: list[str] = field(default_factory=list)

    async def primary(self) -> Node:
        view = await self.cluster.healthy()
        return self.cluster.nodes[view.primary]

    async def other_primary(self, than: Node) -> Node:
        """Waits for the failover."""
        view = await self.cluster.until(lambda view: view.primary != than.name)
        return self.cluster.nodes[view.primary]


@dataclass(frozen=True)
class Fault:
    name: str
    inject: Callable[[Parts], Awaitable[None]]


async def _kill_primary(parts: Parts) -> None:
    primary = await parts.primary()
    primary.database_signal(signal.SIGKILL)
    await parts.other_primary(primary)
    await asyncio.sleep(_STAYS_DOWN)
    await primary.start_database()


async def _kill_postgresql(parts: Parts) -> None:
    primary = await parts.primary()
    primary.machine.send_signal(signal.SIGKILL, "postgres")
    await parts.other_primary(primary)


async def _kill_standby(parts: Parts) -> None:
    view = await parts.cluster.healthy()
    standby = parts.cluster.nodes[next(iter(view.synchronous))]
    standby.database_signal(signal.SIGKILL)
    await parts.cluster.until(lambda now: bool(now.synchronous - {standby.name}))
    await asyncio.sleep(_STAYS_DOWN)
    await standby.start_database()


async def _kill_etcd_leader(parts: Parts) -> None:
    leader = await parts.cluster.etcd_leader()
    await parts.supervisor.kill(leader.etcd, _STAYS_DOWN)


async def _stop_primary(parts: Parts) -> None:
    """SIGSTOP: the machine hangs, and believes on waking that it is still the primary."""
    primary = await parts.primary()
    primary.database_signal(signal.SIGSTOP)
    witness = Witness(primary)
    witness.start()
    await asyncio.sleep(_STOPPED)
    primary.database_signal(signal.SIGCONT)
    parts.lost += await witness.lost(await parts.other_primary(primary))


async def _cut_primary(parts: Parts) -> None:
    """The cable is pulled: programs on the machine itself still reach its PostgreSQL."""
    primary = await parts.primary()
    parts.network.cut(primary.machine)
    witness = Witness(primary)
    witness.start()
    await asyncio.sleep(_CUT)
    parts.network.restore(primary.machine)
    parts.lost += await witness.lost(await parts.other_primary(primary))


FAULTS: Final = (
    Fault("kill -9 of a guichet serve", lambda parts: parts.supervisor.kill(parts.service.servers[0])),
    Fault("kill -9 of a guichet worker", lambda parts: parts.supervisor.kill(parts.service.workers[0])),
    Fault("kill -9 of Redis, back after 5 s", lambda parts: parts.supervisor.kill(parts.front.redis, _STAYS_DOWN)),
    Fault("kill -9 of HAProxy", lambda parts: parts.supervisor.kill(parts.front.haproxy)),
    Fault("kill -9 of PgBouncer", lambda parts: parts.supervisor.kill(parts.front.pgbouncer)),
    Fault("kill -9 of etcd’s leader, back after 5 s", _kill_etcd_leader),
    Fault("kill -9 of the synchronous standby and its Patroni", _kill_standby),
    Fault("kill -9 of the primary PostgreSQL", _kill_postgresql),
    Fault("kill -9 of the primary PostgreSQL and its Patroni", _kill_primary),
    Fault("SIGSTOP of the primary PostgreSQL and its Patroni for 60 s", _stop_primary),
    Fault("the network of the primary’s machine is cut for 45 s", _cut_primary),
)
