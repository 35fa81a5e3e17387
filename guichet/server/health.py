"""`/healthz` and `/readyz`, for load balancers: whether the process is up, and whether it can work."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from guichet.db.write_probe import WriteProbe


class Alive(Protocol):
    """A worker: whether all its loops run."""

    async def is_alive(self) -> bool: ...


async def healthz(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


def readyz(write_probe: WriteProbe, worker: Alive | None) -> Callable[[Request], Awaitable[Response]]:
    """The handler of `/readyz`: 200 if a write to the database works and the loops of this process's worker run, else
    503, after two seconds at most.

    `worker`: None if this process has none. The body says which of them does not work, and why.
    """

    async def ready(request: Request) -> Response:
        fault = await write_probe.fault()
        working = "elsewhere" if worker is None else "ok" if await worker.is_alive() else "stopped"
        ok = fault is None and working != "stopped"
        body = {
            "status": "ok" if ok else "unavailable",
            "database": "ok" if fault is None else "unavailable",
            "worker": working,
        }
        return JSONResponse(body if fault is None else {**body, "reason": fault}, 200 if ok else 503)

    return ready
