"""What a process that serves asks of Python's garbage collector and of the C library's allocator."""

import ctypes
import gc
from contextlib import suppress
from typing import Final

#: malloc.h of glibc: from how many bytes a block has pages of its own.
_M_MMAP_THRESHOLD: Final = -3
_LARGE_BLOCK: Final = 128 * 1024


def tune_garbage_collector() -> None:
    """Objects made at the start live as long as the process, so the collector need not scan them again. How often it
    looks for those of requests: `cli.main`.
    """
    gc.collect()
    gc.freeze()


def tune_allocator() -> None:
    """Large blocks return to the system when they are freed. glibc otherwise takes them from its heap after the first
    one was freed, where the buffer of 256 KB of each TLS connection (uvloop) stays in memory with all its pages.
    """
    with suppress(AttributeError, OSError):  # Another C library.
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK)
