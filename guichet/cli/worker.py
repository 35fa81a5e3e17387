"""`guichet worker`."""

import asyncio

import typer

from guichet.bootstrap import ensure_schema, needs_upgrade, service
from guichet.cli.process import Grace, begin_process, check_files, complete_start, run_process
from guichet.cli.runner import load_settings
from guichet.db.batching import GATHERED_WITHIN
from guichet.db.sqlite.lock import lock_database
from guichet.logs import log
from guichet.provider_accounts import live_providers
from guichet.server.http_server import GRACE
from guichet.server.metrics_port import metrics_port
from guichet.server.process_tuning import tune_allocator, tune_garbage_collector
from guichet.server.processes import on_stop
from guichet.webhooks.lease_release import release_webhooks
from guichet.worker.wakeups import wakeups

app = typer.Typer()


@app.command(epilog="Example: `guichet worker --grace 11`")
def worker(grace: Grace = GRACE) -> None:
    """Run the loops alone: poll payments, disburse refunds, deliver webhooks."""
    # Past PgBouncer where it can: an older PgBouncer has each claim planned again, which takes the primary longer than
    # everything else that a webhook asks of it (bench/README.md, "What a payment asks of PostgreSQL").
    settings = load_settings().direct
    begin_process(settings)

    async def main() -> None:
        await check_files(settings)
        await needs_upgrade(settings)  # Without a database there is nothing to lock.
        with lock_database(settings) as is_alone:
            await ensure_schema(settings)
            async with service(settings, providers=live_providers(settings), gathers=GATHERED_WITHIN) as opened:
                stopped = asyncio.Event()
                on_stop(lambda *_: stopped.set())
                if is_alone:
                    await release_webhooks(opened.ctx.db, opened.ctx.clock.now())
                loops = opened.worker()
                async with wakeups(opened.ctx, working=True), metrics_port(opened.ctx):
                    complete_start(opened.ctx.settings)
                    await opened.http_client.open()
                    tune_garbage_collector()
                    tune_allocator()
                    loops.start()
                    log.info("worker.started")
                    await stopped.wait()
                await loops.stop(grace)

    run_process(main())
