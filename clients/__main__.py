"""`python -m clients`: the linters, then every client whose tools are installed."""

import argparse
import sys
import time
from collections.abc import Callable

from clients import linters
from clients.demo import Demo, running_demo
from clients.generators import CLIENTS, StepFailed, build_and_run, generate
from clients.linters import LINTERS, lint

PORT = 8765


def main() -> int:
    names = [*LINTERS, *(client.name for client in CLIENTS)]
    parser = argparse.ArgumentParser(prog="python -m clients", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join(names)}")
    parser.add_argument("--port", type=int, default=PORT, help="port of the demo service (default: %(default)s)")
    options = parser.parse_args()
    if unknown := set(options.names) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    chosen = options.names or names
    with running_demo(options.port) as demo:
        try:
            generate((each for each in CLIENTS if each.name in chosen and not each.missing()), demo)
        except StepFailed as failure:
            print(f"✗ {failure}")
            return 1
        results = [_tried(name, demo) for name in chosen]
    return 0 if all(results) else 1


def _tried(name: str, demo: Demo) -> bool:
    """Prints one line, and what failed."""
    work, missing = _work(name)
    if missing:
        print(f"✗ {name}: not installed: {', '.join(missing)}")
        return False
    started = time.monotonic()
    try:
        work(demo)
    except StepFailed as failure:
        print(f"✗ {failure}")
        return False
    print(f"✓ {name} ({time.monotonic() - started:.0f} s)", flush=True)
    return True


def _work(name: str) -> tuple[Callable[[Demo], None], list[str]]:
    if name in LINTERS:
        return lambda demo: lint(name, demo), linters.missing()
    [client] = [each for each in CLIENTS if each.name == name]
    return lambda demo: build_and_run(client, demo), client.missing()


if __name__ == "__main__":
    sys.exit(main())
