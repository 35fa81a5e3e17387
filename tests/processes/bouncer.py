"""PgBouncer before the test's PostgreSQL. A test is skipped, loudly, where it is not installed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from reliability import pgbouncer as bouncers

#: Fewer connections than requests at once, so that every connection serves many clients in turn.
POOL: Final = 3


@contextmanager
def pgbouncer(server_url: str, pool: int = POOL) -> Iterator[str]:
    """The address of a bouncer that leads where `server_url` leads, by a Unix socket."""
    _require()
    with bouncers.pgbouncer(server_url, pool) as url:
        yield url


@contextmanager
def keeping_pgbouncer(server_url: str) -> Iterator[str]:
    """One that keeps prepared statements."""
    _require()
    if not bouncers.keeps_statements():
        pytest.skip("LOUD: pgbouncer is older than 1.21, prepared statements behind it are not tested")
    with bouncers.pgbouncer(server_url, POOL) as url:
        yield url


@contextmanager
def documented_pgbouncer(server_url: str) -> Iterator[str]:
    """The same with the files of docs/operations/ha, as the role `guichet`."""
    _require()
    with bouncers.documented_pgbouncer(server_url) as url:
        yield url


def _require() -> None:
    if bouncers.program() is None:
        pytest.skip("LOUD: pgbouncer is not installed, Guichet behind it is not tested")
