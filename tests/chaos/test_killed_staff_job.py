"""`kill -9` of the real command while it does a job of the staff: the job waits for the lease, then it is done."""

import asyncio
from pathlib import Path

from sqlalchemy import bindparam, select, update

from guichet.accounts import users
from guichet.accounts.invitations import Invitation, invite
from guichet.back_office.jobs.requests import JobRequest, ask
from guichet.back_office.jobs.tasks import LedgerMargin, ProviderCheck, Task
from guichet.bootstrap import service
from guichet.clock import Instant
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.db.tables import staff_jobs
from guichet.domain.audit_log import Actor
from guichet.domain.staff_jobs import STAFF_JOB_LEASE, StaffJob
from guichet.mail.outbox import Outbox
from guichet.settings import Settings
from tests.chaos.test_kill import serving
from tests.fakes.http_server import ReceivedRequest, ScriptedServer, answers, hangs
from tests.patience import PATIENCE

_PROVIDERS = """
[accounts.one]
provider = "wave"
base_url = "{url}"
country = "sn"
api_key = "k"
webhook_secret = "s"

[routes]
wave_sn = ["one"]
"""
_REFUSES = answers(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
_ACTOR = Actor("awa@guichet.example", "console")


async def _asked(ctx: AppContext, task: Task) -> int:
    user = require(await users.by_email(ctx.db, _ACTOR.name))
    await ask(ctx, JobRequest(task, None, user.id, task.__struct_config__.tag), _ACTOR)  # type: ignore[arg-type]
    return int(require(await ctx.db.one(select(staff_jobs.c.id).order_by(staff_jobs.c.id.desc())))[0])


async def _job(ctx: AppContext, number: int) -> StaffJob:
    return StaffJob(
        *require(await ctx.db.one(select(staff_jobs).where(staff_jobs.c.id == bindparam("job")), job=number))
    )


async def _ended(ctx: AppContext, number: int) -> StaffJob:
    async with asyncio.timeout(PATIENCE):
        while (job := await _job(ctx, number)).status == "pending":
            await asyncio.sleep(0.05)
    return job


async def test_a_job_whose_worker_was_killed_waits_for_its_lease_and_is_done_then(
    settings: Settings, tmp_path: Path
) -> None:
    recovered = asyncio.Event()

    async def hangs_at_first(writer: asyncio.StreamWriter, request: ReceivedRequest) -> None:
        await (_REFUSES if recovered.is_set() else hangs)(writer, request)

    async with ScriptedServer(hangs_at_first) as provider, service(settings) as opened:
        ctx, providers = opened.ctx, tmp_path / "providers.toml"
        providers.write_text(_PROVIDERS.format(url=provider.url(path="")))
        async with ctx.db.transaction() as tx:
            wanted = Invitation(_ACTOR.name, "Awa", "fr", "finance", None)
            await invite(tx, Outbox(ctx.vault), wanted, _ACTOR, "http://localhost/console", ctx.clock.now())
        check = await _asked(ctx, ProviderCheck())
        async with serving(settings, GUICHET_PROVIDERS_FILE=str(providers)) as server:
            async with asyncio.timeout(PATIENCE):
                while not provider.received:
                    await asyncio.sleep(0.02)
            await server.kill()
        recovered.set()
        margin = await _asked(ctx, LedgerMargin(Instant(0), ctx.clock.now()))
        async with serving(settings, GUICHET_PROVIDERS_FILE=str(providers)) as server:
            assert (await _ended(ctx, margin)).status == "done"
            waiting = await _job(ctx, check)
            assert (waiting.status, waiting.attempts) == ("pending", 1), (
                "a worker that died says nothing: its lease counts"
            )
            earlier = (
                update(staff_jobs).where(staff_jobs.c.id == check).values(due_at=staff_jobs.c.due_at - STAFF_JOB_LEASE)
            )
            await ctx.db.write(earlier)
            done = await _ended(ctx, check)
            assert (done.status, done.attempts, done.parameters) == ("done", 2, None)
            assert await server.stop() == 0
