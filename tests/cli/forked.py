"""Trials start `python -m guichet …`; a slice of one in the tests forks it (child.py), at a tenth of the cost."""

import asyncio
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from tests.cli.child import Child


class ForkedCommand:
    """With what the trials use of asyncio's `Process`."""

    def __init__(
        self,
        arguments: tuple[str, ...],
        env: dict[str, str],
        stdout: IO[bytes] | int,
        stderr: IO[bytes] | int,
        cwd: Path | None = None,
        start_new_session: bool = False,
        stdin: int | None = None,
    ) -> None:
        out, err = (None if each == PIPE else each for each in (stdout, stderr))
        self._child = Child(arguments, env, cwd or Path.cwd(), out, err, own_session=start_new_session)  # type: ignore[arg-type]
        self.pid = self._child.pid
        self.terminate, self.kill = self._child.terminate, self._child.kill

    @property
    def returncode(self) -> int | None:
        return self._child.returncode

    async def wait(self) -> int:
        while self.returncode is None:
            await asyncio.sleep(0.01)
        return self.returncode

    async def communicate(self) -> tuple[bytes, bytes]:
        with self._child:
            out, err = await asyncio.to_thread(self._child.communicate)
        return out.encode(), err.encode()


@pytest.fixture(scope="module", autouse=True)
def forked_commands() -> Iterator[None]:
    """Every `python -m guichet` that asyncio starts in a test that imports this."""
    starting = asyncio.create_subprocess_exec

    async def start(*command: str, **options: Any) -> Any:
        if command[1:3] == ("-m", "guichet"):
            return ForkedCommand(command[3:], **options)
        return await starting(*command, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(asyncio, "create_subprocess_exec", start)
        yield
