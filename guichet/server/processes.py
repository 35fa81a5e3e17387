"""Several processes behind one port: a parent that owns the socket and starts a process again when it dies."""

import asyncio
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from guichet.logs import log
from guichet.server.connection_sharing import Share, table_for

#: Seconds before a process that died is started again: the first time, and at most.
FIRST_PAUSE: Final = 0.2
LONGEST_PAUSE: Final = 15.0
#: Who lived so long, in seconds, died of something new.
HEALTHY: Final = 30.0
#: How long the processes have to stop by themselves, in seconds, unless told otherwise; each of them takes less.
STOP_WITHIN: Final = 1.8
_STDIN: Final = 0


def on_stop(stop: Callable[[int, None], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number, None)


def stop_with_parent(stop: Callable[[int, None], None]) -> None:
    """The parent holds the other end of standard input: when it ends, however it ended, so does this process."""
    loop = asyncio.get_running_loop()

    def ended() -> None:
        loop.remove_reader(_STDIN)
        stop(signal.SIGTERM, None)

    loop.add_reader(_STDIN, ended)


async def supervise(
    listening: socket.socket, count: int, arguments: list[str], stop_within: float = STOP_WITHIN
) -> None:
    """Runs `count` processes of `arguments` on the socket until this one is told to stop; then they have stopped,
    those that take longer than `stop_within` seconds by force.
    """
    stopping = asyncio.Event()
    on_stop(lambda *_: stopping.set())
    with table_for(count) as table:
        inherited = listening.fileno(), table.fileno()
        command = [sys.executable, "-m", "guichet", *arguments, "--inherit", *map(str, inherited)]
        keepers = [
            asyncio.create_task(_keep(number, command, inherited, stopping, stop_within))
            for number in range(1, count + 1)
        ]
        await stopping.wait()
        await asyncio.gather(*keepers)


async def _keep(
    number: int, command: list[str], inherited: tuple[int, int], stopping: asyncio.Event, stop_within: float
) -> None:
    """One of the processes, started again whenever it ends by itself; the back-off grows while it does not live."""
    loop = asyncio.get_running_loop()
    share = Share(inherited[1], number)
    pause = FIRST_PAUSE
    while not stopping.is_set():
        began = loop.time()
        process = await _started([*command, "--number", str(number)], inherited)
        log.info("process.started", number=number, pid=process.pid)
        ended, told = asyncio.create_task(process.wait()), asyncio.create_task(stopping.wait())
        await asyncio.wait((ended, told), return_when=asyncio.FIRST_COMPLETED)
        if stopping.is_set():
            await _stop(process, stop_within)
            return
        share.leave()
        pause = FIRST_PAUSE if loop.time() - began >= HEALTHY else pause
        log.error("process.died", number=number, pid=process.pid, code=process.returncode, again_in_seconds=pause)
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await told
        pause = min(2 * pause, LONGEST_PAUSE)


async def _started(command: list[str], inherited: tuple[int, int]) -> Process:
    """In a session of its own: Ctrl-C reaches the parent, and the parent tells everybody once."""
    return await asyncio.create_subprocess_exec(*command, stdin=PIPE, pass_fds=inherited, start_new_session=True)


async def _stop(process: Process, within: float) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(within):
            await process.wait()
    except TimeoutError:
        log.error("process.killed", pid=process.pid)
        process.kill()
        await process.wait()
