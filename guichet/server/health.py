"""`/healthz` and `/readyz`, for load balancers: whether the process is up, and whether it can work."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from sqlalchemy import select
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from guichet.db.engine import Database
from guichet.db.errors import StorageError
from guichet.db.tables import merchants

_PROBE = select(merchants.c.id).limit(1)


class Alive(Protocol):
    """A worker: whether all its loops run."""

    @property
    def alive(self) -> bool: ...


async def healthz(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


def readyz(db: Database, worker: Alive | None) -> Callable[[Request], Awaitable[Response]]:
    """The handler of `/readyz`: 200 if the database answers and the loops of this process's worker run, else 503.

    `worker`: None if this process has none. The body says which of them does not work.
    """

    async def ready(request: Request) -> Response:
        try:
            await db.one(_PROBE)
            database = "ok"
        except StorageError:
            database = "unavailable"
        working = "elsewhere" if worker is None else "ok" if worker.alive else "stopped"
        ok = database == "ok" and working != "stopped"
        body = {"status": "ok" if ok else "unavailable", "database": database, "worker": working}
        return JSONResponse(body, 200 if ok else 503)

    return ready
