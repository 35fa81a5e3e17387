"""Writes on one machine's PostgreSQL itself, while it is stopped or cut off: an acknowledged one must never be lost."""

import asyncio
import uuid
from dataclasses import dataclass, field
from typing import Final

from reliability.ha.cluster import Node

_TABLE: Final = "CREATE TABLE IF NOT EXISTS witness (id text PRIMARY KEY)"
_WRITERS: Final = 3


async def create_table(primary: Node) -> None:
    code, _, err = await primary.psql("-c", _TABLE)
    assert code == 0, err


@dataclass
class Witness:
    """`node`: the machine that may believe that it is still the primary."""

    node: Node
    _writes: dict[str, asyncio.Task[bool]] = field(default_factory=dict)

    def start(self) -> None:
        """Sends writes whose commits must wait: no standby confirms them any more."""
        for _ in range(_WRITERS):
            key = str(uuid.uuid4())
            self._writes[key] = asyncio.create_task(self._write(key))

    async def _write(self, key: str) -> bool:
        """Whether the write was acknowledged."""
        code, _, _ = await self.node.psql("-c", f"INSERT INTO witness VALUES ('{key}')")
        return code == 0

    async def lost(self, primary: Node, seconds: float = 60.0) -> list[str]:
        """Writes that were acknowledged and that the primary of now does not have. Waits until all have an answer."""
        async with asyncio.timeout(seconds):
            answers = await asyncio.gather(*self._writes.values())
        acknowledged = {key for key, answered in zip(self._writes, answers, strict=True) if answered}
        _, out, _ = await primary.psql("-c", "SELECT id FROM witness")
        return sorted(acknowledged - set(out.split()))
