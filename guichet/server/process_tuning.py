"""What a process that serves asks of Python's garbage collector and of the C library's allocator."""

import gc
from contextlib import suppress
from typing import Final

#: Thresholds of the garbage collector. Objects are freed by their reference counts; cycles are rare.
RARELY: Final = (20_000, 20, 20)
#: malloc.h of glibc: from how many bytes a block has pages of its own.
_M_MMAP_THRESHOLD: Final = -3
_LARGE_BLOCK: Final = 128 * 1024


def tune_garbage_collector() -> None:
    """Objects made at the start live as long as the process, so the collector need not scan them again. It does not
    look for garbage among them first: imports leave half a megabyte, and looking takes a tenth of the start.
    """
    gc.freeze()
    gc.set_threshold(*RARELY)


def tune_allocator() -> None:
    """Large blocks return to the system when they are freed. glibc otherwise takes them from its heap after the first
    one was freed, where the buffer of 256 KB of each TLS connection (uvloop) stays in memory with all its pages.
    """
    import ctypes  # noqa: PLC0415 - two milliseconds, and a command needs it no sooner

    with suppress(AttributeError, OSError):  # Another C library.
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK)
