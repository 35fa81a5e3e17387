"""A profiling hook that notes which functions of the service start, and which file calls which."""

import dis
import sys
import threading
from asyncio.events import Handle, TimerHandle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FrameType
from typing import Final, NamedTuple

from tests.frozen.service import PACKAGE, SIMULATOR

#: Not counted: the databases' engine, configuration, time, logs, metrics, traces, the context of a request, and the
#: HTTP server below the application, which is the same for all of them. The beginnings of paths.
NOT_COUNTED: Final = (
    "db/", "settings/", "clock.py", "logs.py", "printable.py", "metrics.py", "tracing.py", "otlp.py",
    "context.py", "server/request_context.py", "server/connection_", "server/http_", "server/listener.py",
)  # fmt: skip


class Function(NamedTuple):
    """`file` relative to the package, `name` qualified by its class."""

    file: str
    name: str


@dataclass
class Trace:
    """What started, in the order of first starts. `hops`: calls from one counted file into another, also by way of one
    that is not counted."""

    functions: dict[Function, None] = field(default_factory=dict)
    not_counted: set[str] = field(default_factory=set)
    hops: int = 0


class Recorder:
    """Fills a trace while one is being recorded."""

    def __init__(self) -> None:
        self._trace: Trace | None = None

    @contextmanager
    def installed(self) -> Iterator[None]:
        """In this thread and in those that start meanwhile."""
        threading.setprofile(self._hook)
        sys.setprofile(self._hook)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    @contextmanager
    def recording(self, trace: Trace) -> Iterator[None]:
        self._trace = trace
        yield
        self._trace = None

    def _hook(self, frame: FrameType, event: str, _: object) -> None:
        trace, function = self._trace, None if event != "call" else _function(frame.f_code)
        if trace is None or function is None or _goes_on(frame):
            return
        callers = list(_callers(frame))
        if any(_is_simulator(each.f_code) or _is_timer(each) for each in callers):
            return
        if function.file.startswith(NOT_COUNTED):
            trace.not_counted.add(function.file)
            return
        trace.functions.setdefault(function)
        calling = filter(None, (_function(each.f_code) for each in callers))
        caller = next((each for each in calling if not each.file.startswith(NOT_COUNTED)), None)
        trace.hops += caller is not None and caller.file != function.file


@cache
def _function(code: CodeType) -> Function | None:
    """None for what is not a named function of the service."""
    if not code.co_filename.startswith(f"{PACKAGE}/") or code.co_qualname.endswith(">") or _is_simulator(code):
        return None
    return Function(code.co_filename.removeprefix(f"{PACKAGE}/"), code.co_qualname.replace("<locals>.", ""))


@cache
def _is_simulator(code: CodeType) -> bool:
    """It stands for the providers: whatever it calls of the service is not the service's way."""
    return code.co_filename.startswith(f"{SIMULATOR}/")


def _goes_on(frame: FrameType) -> bool:
    """A coroutine that is entered again after a wait."""
    return frame.f_lasti > _start(frame.f_code)


@cache
def _start(code: CodeType) -> int:
    return next(each.offset for each in dis.get_instructions(code) if each.opname == "RESUME")


def _callers(frame: FrameType) -> Iterator[FrameType]:
    caller = frame.f_back
    while caller is not None:
        yield caller
        caller = caller.f_back


def _is_timer(frame: FrameType) -> bool:
    return frame.f_code is Handle._run.__code__ and isinstance(frame.f_locals["self"], TimerHandle)
