"""Several server processes on one port: a parent that owns the socket and restarts a process that ends."""

import asyncio
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from guichet.logs import log
from guichet.server.connection_sharing import ConnectionShare, connection_table
from guichet.server.listener import is_listening, start_listening, stop_listening

#: Seconds before a process that ended is started again: the first time, and at most.
MIN_RESTART_DELAY: Final = 0.2
MAX_RESTART_DELAY: Final = 15.0
#: A process that lived for so many seconds was healthy: the delay begins again at its minimum.
HEALTHY_AFTER: Final = 30.0
#: Seconds that the processes have to stop before they are killed, unless the caller says otherwise.
STOP_TIMEOUT: Final = 1.8
_STDIN: Final = 0


def on_stop(stop: Callable[[int, None], None]) -> None:
    """Calls `stop` when this process receives SIGINT or SIGTERM."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number, None)


def stop_with_parent(stop: Callable[[int, None], None]) -> None:
    """Calls `stop` when the parent process ends. The parent holds the other end of this process's standard input."""
    loop = asyncio.get_running_loop()

    def parent_ended() -> None:
        loop.remove_reader(_STDIN)
        stop(signal.SIGTERM, None)

    loop.add_reader(_STDIN, parent_ended)


async def supervise(
    listener: socket.socket, count: int, arguments: list[str], stop_timeout: float = STOP_TIMEOUT
) -> None:
    """Runs `count` processes of `guichet` with `arguments` on the socket until this process is told to stop.

    It returns when all of them have stopped; those that take longer than `stop_timeout` seconds are killed.
    """
    stopping = asyncio.Event()
    on_stop(lambda *_: stopping.set())
    with connection_table(count) as table:
        descriptors = listener.fileno(), table.fileno()
        command = [sys.executable, "-m", "guichet", *arguments, "--inherit", *map(str, descriptors)]
        supervisors = [
            asyncio.create_task(_keep_running(number, command, listener, table.fileno(), stopping, stop_timeout))
            for number in range(1, count + 1)
        ]
        await stopping.wait()
        await asyncio.gather(*supervisors)


async def _keep_running(
    number: int,
    command: list[str],
    listener: socket.socket,
    table: int,
    stopping: asyncio.Event,
    stop_timeout: float,
) -> None:
    """Starts one process again whenever it ends by itself. The delay doubles while it does not stay alive."""
    loop = asyncio.get_running_loop()
    share = ConnectionShare(table, number)
    delay = MIN_RESTART_DELAY
    while not stopping.is_set():
        started_at = loop.time()
        process = await _start([*command, "--number", str(number)], (listener.fileno(), table))
        log.info("process.started", number=number, pid=process.pid)
        exit_task, stop_task = asyncio.create_task(process.wait()), asyncio.create_task(stopping.wait())
        await asyncio.wait((exit_task, stop_task), return_when=asyncio.FIRST_COMPLETED)
        if stopping.is_set():
            await _stop(process, stop_timeout)
            return
        if not share.is_present:
            _refuse_if_nobody_serves(listener, share)
        share.clear()
        delay = MIN_RESTART_DELAY if loop.time() - started_at >= HEALTHY_AFTER else delay
        log.error("process.died", number=number, pid=process.pid, code=process.returncode, restart_in_seconds=delay)
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await stop_task
        delay = min(2 * delay, MAX_RESTART_DELAY)


def _refuse_if_nobody_serves(listener: socket.socket, share: ConnectionShare) -> None:
    """A process could not start, and perhaps none can for a while: the database is away, say. What connects to the port
    would wait without an answer, so it is refused, until one serves. (When a process that served ends, what connects
    meanwhile may wait for the next one.)"""
    if share.is_anyone_present or not is_listening(listener):
        return
    stop_listening(listener)
    if share.is_anyone_present:  # Since a moment ago: it may have begun to listen before this stopped it.
        start_listening(listener)
    else:
        log.error("process.none_serves")


async def _start(command: list[str], descriptors: tuple[int, int]) -> Process:
    """In a session of its own: Ctrl-C reaches the parent only, which then tells each process once."""
    return await asyncio.create_subprocess_exec(*command, stdin=PIPE, pass_fds=descriptors, start_new_session=True)


async def _stop(process: Process, timeout: float) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(timeout):
            await process.wait()
    except TimeoutError:
        log.error("process.killed", pid=process.pid)
        process.kill()
        await process.wait()
