"""`guichet` under a clock that its caller turns: Callgrind makes the service fifty times slower, and what is cached for
a second must not notice.

    python -m bench.budget.entry FILE serve …

FILE has two numbers of eight bytes. The first says how many requests were sent, each of which takes STEP of the
service's time. At SIGUSR1 the process collects garbage and puts the number of its modules into the second.
"""

import gc
import mmap
import signal
import sys
from pathlib import Path
from typing import Final

from guichet import clock

#: Microseconds.
STEP: Final = 250


def shared(path: Path) -> memoryview:
    """The two numbers of a file that another process has too."""
    with path.open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 16)).cast("Q")


def main() -> None:
    numbers = shared(Path(sys.argv.pop(1)))
    start = clock.SystemClock().now()

    class SteppingClock(clock.SystemClock):
        def now(self) -> clock.Instant:
            return clock.later(start, self.monotonic())

        def monotonic(self) -> int:
            return STEP * numbers[0]

    def collect(*_: object) -> None:
        gc.collect()
        numbers[1] = len(sys.modules)

    signal.signal(signal.SIGUSR1, collect)
    clock.SystemClock = SteppingClock  # type: ignore[misc]  # Before anything else of Guichet imports it.
    from guichet.cli import main as command

    command()


if __name__ == "__main__":
    main()
