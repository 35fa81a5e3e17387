"""`python -m bench.ways [--write]`."""

import asyncio
import sys

from bench.ways.page import PAGE, markdown, written
from bench.ways.ways import record


def main(arguments: list[str]) -> None:
    ways = markdown(asyncio.run(record()))
    if arguments == ["--write"]:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), ways), encoding="utf-8")
        return
    for name, text in ways.items():
        sys.stdout.write(f"## {name}\n{text}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
