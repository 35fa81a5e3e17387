"""Processes of a trial: `guichet …` commands and servers beside them, which are killed and started again."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import aiohttp

ROOT: Final = Path(__file__).parents[1]
#: Seconds within which a process must be ready. A loaded machine may need a while.
PATIENCE: Final = 180.0
_POLL: Final = 0.05


def guichet(*arguments: object) -> list[str]:
    """The command line of `guichet …`, with this interpreter."""
    return [sys.executable, "-m", "guichet", *map(str, arguments)]


def clean_environ() -> dict[str, str]:
    """The environment without any GUICHET_* variable of whoever runs the trial."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GUICHET_")}


class ManagedProcess:
    """A process that is started, killed and started again with the same command. Its output goes to `log_file`.

    `ready_url` answers 200 once the process serves; without one, the process counts as ready when it was started.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environ: Mapping[str, str],
        log_file: Path,
        ready_url: str | None = None,
    ) -> None:
        self.name = name
        self._command = list(command)
        self._environ = dict(environ)
        self._log_file = log_file
        self._ready_url = ready_url
        self._process: asyncio.subprocess.Process | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Starts the process, in a session of its own, and returns at once."""
        assert not self.running, self.name
        with self._log_file.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                env=self._environ,
                cwd=ROOT,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def wait_until_ready(self, seconds: float = PATIENCE) -> None:
        """Raises RuntimeError with the end of the log if the process ends, or is not ready in time."""
        if self._ready_url is None:
            return
        timeout = aiohttp.ClientTimeout(total=5)
        try:
            async with asyncio.timeout(seconds), aiohttp.ClientSession(timeout=timeout) as session:
                while not await _answers(session, self._ready_url):
                    if not self.running:
                        break
                    await asyncio.sleep(_POLL)
                else:
                    return
        except TimeoutError:
            pass
        raise RuntimeError(f"{self.name} is not ready:\n{self.log_end()}")

    async def start_and_wait(self) -> None:
        await self.start()
        await self.wait_until_ready()

    async def kill(self, with_signal: int = signal.SIGKILL) -> None:
        """Kills the process and all that it started (`serve --workers`), and waits for its end."""
        if self._process is None:
            return
        if self.running:
            os.killpg(self._process.pid, with_signal)
        await self._process.wait()

    async def stop(self, seconds: float = 20.0) -> int:
        """Asks the process to end; its exit code. Kills it when it does not end in time."""
        if self._process is None:
            return 0
        if self.running:
            self._process.terminate()
        try:
            async with asyncio.timeout(seconds):
                return await self._process.wait()
        except TimeoutError:
            await self.kill()
            return -signal.SIGKILL

    def log_end(self, characters: int = 2000) -> str:
        return self._log_file.read_text(errors="replace")[-characters:] if self._log_file.exists() else ""


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False


async def run_command(command: Sequence[str], environ: Mapping[str, str]) -> tuple[int, str, str]:
    """Runs a command to its end: its exit code, what it printed, and its errors."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=dict(environ),
        cwd=ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()
