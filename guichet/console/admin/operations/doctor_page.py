"""The checks of `guichet doctor`, as far as they end within a few seconds. The embedded database's file is not read."""

import asyncio
from typing import Final

from starlette.responses import Response

from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.context import AppContext
from guichet.db.errors import StorageError
from guichet.server.doctor.check import DoctorCheck
from guichet.server.doctor.checks import of_the_service
from guichet.server.doctor.replication import standbys_and_archive
from guichet.server.doctor.storage import file_modes

#: Seconds after which the page shows what it has.
_WITHIN: Final = 6.0


async def show(request: StaffRequest) -> Response:
    found: list[DoctorCheck] = []
    complete = True
    try:
        async with asyncio.timeout(_WITHIN):
            await _look(request.ctx, found)
    except (TimeoutError, StorageError):
        complete = False
    return request.show("admin/operations/doctor.html", checks=found, complete=complete)


async def _look(ctx: AppContext, found: list[DoctorCheck]) -> None:
    now = ctx.clock.now()
    found.append(file_modes(ctx.settings))
    if ctx.monitoring_db is not None:
        found.append((await standbys_and_archive(ctx.monitoring_db, now))[0])
    async for check in of_the_service(ctx.monitoring_db or ctx.db, now):
        found.append(check)


PAGES: Final = (StaffPage("/doctor", "doctor.view", show, menu="doctor"),)
