"""The processes of the trial: `guichet serve` on a database of its own, and the simulated providers behind it."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from bench.servers import listening, resident_megabytes
from guichet.settings import Settings
from reliability.processes import run_command

#: What no line of the log may hold: each begins an error that nobody expected.
_UNEXPECTED: Final = ("Traceback (most recent call last)", "[error  ]", "[critical]")
#: Errors that must be logged, because of what a provider stated: they are for a person to look at.
_EXPECTED: Final = tuple(
    f"[error  ] {event}"
    for event in (
        "provider.mismatch",
        "refund.float_empty",
        "late_result.found",
        "late_result.return_refused",
        "dispute.unknown_payment",
    )
)
#: Lines of the log that are shown for each; what comes within them is not counted again.
_SHOWN_LINES: Final = 20


@dataclass(frozen=True)
class Held:
    """What a process holds: resident memory in megabytes (VmRSS), and open file descriptors (/proc/PID/fd)."""

    megabytes: float
    descriptors: int


@dataclass(frozen=True)
class Process:
    """A running command, the port that it serves, and its log."""

    pid: int
    port: int
    log_file: Path

    def held(self) -> Held:
        return Held(resident_megabytes(self.pid), len(list(Path(f"/proc/{self.pid}/fd").iterdir())))

    async def held_at_rest(self, seconds: float) -> Held:
        """Once the number of its descriptors has not changed for so long."""
        last, held = None, self.held()
        while held.descriptors != last:
            last = held.descriptors
            await asyncio.sleep(seconds)
            held = self.held()
        return held

    def unexpected(self) -> list[str]:
        """The errors in the log that nobody expected, each with the lines that follow it."""
        lines = self.log_file.read_text(errors="replace").splitlines()
        found, shown = [], 0
        for at, line in enumerate(lines):
            if any(sign in line for sign in _EXPECTED):
                continue
            if at >= shown and any(sign in line for sign in _UNEXPECTED):
                shown = at + _SHOWN_LINES
                found.append("\n".join(lines[at:shown]))
        return found

    @contextmanager
    def errors_told(self, faults: list[str]) -> Iterator[None]:
        """Adds the errors of the log to `faults`, also where a wrong answer ends the block: they say why."""
        try:
            yield
        finally:
            faults += self.unexpected()[:5]


def environment(settings: Settings, port: int, providers_file: Path) -> dict[str, str]:
    """Of every command on this database. Limits are off, but for that of callbacks: requests may name any client
    address, which keeps them under it."""
    return {
        "PATH": os.environ.get("PATH", ""),
        "GUICHET_HOME": str(settings.home),
        "GUICHET_DATABASE_URL": settings.database_url,
        "GUICHET_SECRET_KEYS": ",".join(settings.secret_keys),
        "GUICHET_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "GUICHET_PROVIDERS_FILE": str(providers_file),
        "GUICHET_TRUSTED_PROXIES": "127.0.0.0/8",
        "GUICHET_RATE_LIMIT": "0",
        "GUICHET_PAGE_RATE_LIMIT": "0",
        "GUICHET_LOG_LEVEL": "warning",
    }


def write_providers_file(home: Path, port: int) -> Path:
    """Every account of the development profile, at the address of the hostile providers."""
    text = (resources.files("guichet.data") / "simulated_providers.toml").read_text(encoding="utf-8")
    path = home / "hostile_providers.toml"
    path.write_text(text.replace("{simulator}", f"http://127.0.0.1:{port}/simulator"))
    return path


@asynccontextmanager
async def guichet(
    command: str, port: int, environ: Mapping[str, str], folder: Path, *options: str
) -> AsyncIterator[Process]:
    """`guichet serve` or another command that listens, once it does; stopped at the end. Its log is in `folder`."""
    log_file = folder / f"{command}-{port}.log"
    with log_file.open("ab") as log:
        arguments = ["-m", "guichet", command, "--port", str(port), *options]
        process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, env=dict(environ), stdout=log, stderr=log
        )
    try:
        await listening(process, port)
        yield Process(process.pid, port, log_file)
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(15):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()


async def command(*arguments: str, environ: Mapping[str, str]) -> tuple[int, str]:
    """The exit code of a `guichet …` command, and what it printed."""
    code, out, err = await run_command([sys.executable, "-m", "guichet", *arguments], environ)
    return code, out + err
