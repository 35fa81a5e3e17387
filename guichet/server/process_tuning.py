"""What a process that serves asks of Python's garbage collector and threads, and of the C library's allocator."""

import gc
import sys
from contextlib import suppress
from typing import Final

#: Thresholds of the garbage collector. Objects are freed by their reference counts; cycles are rare.
RARELY: Final = (20_000, 20, 20)
#: Seconds after which a thread that waits for the interpreter gets it, in place of 5 ms.
_SWITCH_INTERVAL: Final = 0.0001
#: malloc.h of glibc: from how many bytes a block has pages of its own.
_M_MMAP_THRESHOLD: Final = -3
_LARGE_BLOCK: Final = 128 * 1024


def tune_garbage_collector() -> None:
    """Objects made at the start live as long as the process, so the collector need not scan them again. It does not
    look for garbage among them first: imports leave half a megabyte, and looking takes a tenth of the start.
    """
    gc.freeze()
    gc.set_threshold(*RARELY)


def tune_threads() -> None:
    """The thread that commits needs the interpreter before and after each COMMIT, and the event loop never lets it go
    for long: with Python's own interval half of a commit's time is this waiting. And beside a thread that computes, the
    event loop waits for one interval after each system call that it makes.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL)


def tune_allocator() -> None:
    """Large blocks return to the system when they are freed. glibc otherwise takes them from its heap after the first
    one was freed, where the buffer of 256 KB of each TLS connection (uvloop) stays in memory with all its pages.
    """
    import ctypes  # noqa: PLC0415 - two milliseconds, and a command needs it no sooner

    with suppress(AttributeError, OSError):  # Another C library.
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK)
