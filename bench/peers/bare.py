"""The least that the same libraries can do, the ceiling: one Starlette route, pydantic in, msgspec out.

BENCH_KEY=… BENCH_DATABASE=sqlite:///… python -m bench.peers.bare PORT       (group commit)
BENCH_KEY=… BENCH_DATABASE=postgresql://… python -m bench.peers.bare PORT    (asyncpg)

BENCH_TABLE names the table: Guichet's own `payments`, or `own_payments` of `tables.py`.
"""

import asyncio
import os
import sqlite3
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Protocol

import asyncpg
import msgspec
import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bench.peers.common import Body, known, rendered, row_of
from bench.peers.tables import own_payments
from guichet.db.tables import payments

URL = os.environ["BENCH_DATABASE"]
TABLE = {table.name: table for table in (payments, own_payments)}[os.environ["BENCH_TABLE"]]
COLUMNS = [column.name for column in TABLE.c if column.name != "id"]


class Store(Protocol):
    async def open(self) -> None: ...

    async def insert(self, row: dict[str, Any]) -> int:
        """The id; what it returns is on disk."""


class Sqlite:
    """Everything inserted in one turn of the loop shares one commit."""

    def __init__(self) -> None:
        self._group: asyncio.Future[None] | None = None
        self._committing: asyncio.Future[None] | None = None
        self._pool = ThreadPoolExecutor(1)
        names = ", ".join(COLUMNS)
        self._insert = f"INSERT INTO {TABLE.name} ({names}) VALUES ({', '.join(f':{name}' for name in COLUMNS)})"

    async def open(self) -> None:
        path = URL.removeprefix("sqlite:///")
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            self._db.execute(f"PRAGMA {pragma}")

    async def insert(self, row: dict[str, Any]) -> int:
        while self._committing is not None:
            await asyncio.wait([self._committing])
        if self._group is None:
            loop = asyncio.get_running_loop()
            self._group = loop.create_future()
            self._db.execute("BEGIN IMMEDIATE")
            loop.call_soon(self._flush)
        group = self._group
        payment_id = self._db.execute(self._insert, row).lastrowid
        await asyncio.shield(group)
        assert payment_id is not None
        return payment_id

    def _flush(self) -> None:
        group, self._group = self._group, None
        self._committing = group
        loop = asyncio.get_running_loop()
        commit = loop.run_in_executor(self._pool, self._db.execute, "COMMIT")
        commit.add_done_callback(self._committed)

    def _committed(self, commit: asyncio.Future[Any]) -> None:
        group, self._committing = self._committing, None
        assert group is not None
        if error := commit.exception():
            group.set_exception(error)
        else:
            group.set_result(None)


class Postgres:
    def __init__(self) -> None:
        names = ", ".join(COLUMNS)
        places = ", ".join(f"${number + 1}" for number in range(len(COLUMNS)))
        self._insert = f"INSERT INTO {TABLE.name} ({names}) VALUES ({places}) RETURNING id"

    async def open(self) -> None:
        self._pool = await asyncpg.create_pool(URL, min_size=16, max_size=16, reset=_leave_as_is)

    async def insert(self, row: dict[str, Any]) -> int:
        async with self._pool.acquire() as connection:
            return int(await connection.fetchval(self._insert, *[row[name] for name in COLUMNS]))


async def _leave_as_is(connection: Any) -> None:
    """No session state is ever set."""


store: Store = Sqlite() if URL.startswith("sqlite") else Postgres()


async def create_payment(request: Request) -> Response:
    if not known(request.headers.get("authorization")):
        return Response(status_code=401)
    try:
        body = Body.model_validate_json(await request.body())
        row, mode = row_of(body)
    except (ValidationError, ValueError) as error:
        return Response(str(error), 422)
    payment_id = await store.insert(row)
    answer = {"success": True, "data": rendered(payment_id, row, mode)}
    return Response(msgspec.json.encode(answer), 201, media_type="application/json")


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[None]:
    await store.open()
    yield


app = Starlette(routes=[Route("/v1/payments", create_payment, methods=["POST"])], lifespan=lifespan)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
