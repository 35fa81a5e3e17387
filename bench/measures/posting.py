"""`POST /payments` side by side: Guichet, the usual way, the bare ceiling, a mock in Node, pgbench."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, Literal

from bench import servers
from bench.generator import COUNTER, Load
from bench.live import ENDING, simulator
from bench.loads import request, run
from bench.peers import launch
from bench.rounds import CONNECTIONS, Runner, against
from bench.servers import HOST, Target
from guichet.settings import Settings

#: What a shop sends: an order of its own, a customer with an address. The number never validates.
BODY: Final = {
    "amount": 5000,
    "operator": "mtn",
    "phone_number": "22997000002",
    "description": "Commande 1234",
    "external_id": f"order-{COUNTER.decode()}",
    "customer": {"firstname": "Awa", "lastname": "Diallo", "email": "awa.diallo@example.com"},
}
CHARGE: Final = b"amount=5000&currency=usd&source=tok_visa&description=Commande+1234&receipt_email=awa%40example.com"

TWO_PROCESSES: Final = "guichet, two processes"
AS_USERS_RUN_IT: Final = "guichet, as users run it"
LIVE: Final = "guichet, live"
OWN_TABLE: Final = "bare, own table"
#: Validated at once, never, refused, validated after ten seconds (docs/contract.md, "The test environment").
ENDINGS: Final = ("0000", "0002", "0003", "1234")


def create(key: str, **fields: object) -> bytes:
    return request("POST", "/v1/payments", key, {**BODY, **fields})


def create_live(key: str) -> bytes:
    """A payment that the simulated provider takes, and that succeeds after two seconds."""
    return create(key, phone_number=f"22977123{ENDING}")


@asynccontextmanager
async def sqlite_contenders(home: Path, *, foreign: bool = True) -> AsyncIterator[dict[str, Runner]]:
    async with AsyncExitStack() as stack:
        contenders: dict[str, Runner] = {}
        for name, processes in (("guichet", 1), (TWO_PROCESSES, 2)):
            contenders[name] = await _guichet(stack, servers.settings_for(home / f"guichet{processes}"), processes)
        contenders[AS_USERS_RUN_IT] = await _as_users_run_it(stack, home / "users")
        contenders[LIVE] = await _live(stack, home / "live")
        for name in _peers(foreign=foreign):
            contenders[name] = await _peer(stack, name, f"sqlite:///{home / name}.db")
        if foreign and (mock := await stack.enter_async_context(launch.mock())):
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            contenders["mock"] = against(mock, request("POST", "/v1/charges", "sk_test_bench", CHARGE, headers))
        yield contenders


@asynccontextmanager
async def postgres_contenders(home: Path, server: str, *, foreign: bool = True) -> AsyncIterator[dict[str, Runner]]:
    async with AsyncExitStack() as stack:
        settings = servers.settings_for(home / "pg", await servers.new_database(server, "posting_guichet"))
        contenders = {"guichet": await _guichet(stack, settings)}
        contenders[LIVE] = await _live(stack, home / "pg_live", await servers.new_database(server, "posting_live"))
        for number, name in enumerate(_peers(foreign=foreign)):
            contenders[name] = await _peer(stack, name, await servers.new_database(server, f"posting_peer_{number}"))
        bare = _peers(foreign=foreign).index("bare")
        for name, database in (("pgbench", f"posting_peer_{bare}"), ("pgbench+counts", "posting_guichet")):
            if pgbench := launch.pgbench_runner(servers.named(server, database), home):
                contenders[name] = pgbench
        yield contenders


async def generator_limit(seconds: float = 3) -> float:
    """What the generator reaches against a server that does nothing: far above what is measured, or it would be it."""
    port = servers.free_port()
    async with servers.python(["-m", "bench.receiver", str(port)], port):
        found = await run(Load(HOST, port, [create("sk_test_x")], seconds, 0.5, CONNECTIONS))
    return found.per_second


def bare_post(target: Target) -> Runner:
    """The bare handler's POST, which other rates are divided by in the same rounds."""
    return against(target, create(target.key))


def _peers(*, foreign: bool) -> tuple[str, ...]:
    return ("usual", "bare", OWN_TABLE) if foreign else ("bare", OWN_TABLE)


async def _guichet(stack: AsyncExitStack, settings: Settings, processes: int = 1) -> Runner:
    merchant = (await servers.prepare(settings))[0]
    serving = servers.guichet(settings, merchant.key, worker=False, processes=processes)
    return against(await stack.enter_async_context(serving), create(merchant.key))


async def _as_users_run_it(stack: AsyncExitStack, home: Path) -> Runner:
    """`guichet serve` as it is started by default: with its worker, logging requests, numbers of every outcome."""
    settings = servers.settings_for(home)
    merchant = (await servers.prepare(settings))[0]
    serving = servers.guichet(settings, merchant.key, worker=True, log_level="info")
    target = await stack.enter_async_context(serving)
    return against(target, *(create(merchant.key, phone_number=f"2299700{ending}") for ending in ENDINGS))


async def _live(stack: AsyncExitStack, home: Path, database: str | None = None) -> Runner:
    """A live payment, which is on disk before a provider's API is asked for it, and its answer after that."""
    port = servers.free_port()
    settings = await stack.enter_async_context(simulator(home, f"http://{HOST}:{port}", database))
    merchant = (await servers.prepare(settings))[0]
    serving = servers.guichet(settings, merchant.live_key, worker=False, port=port)
    return against(await stack.enter_async_context(serving), create_live(merchant.live_key))


async def _peer(stack: AsyncExitStack, name: str, url: str) -> Runner:
    program: Literal["usual", "bare"] = "usual" if name == "usual" else "bare"
    return bare_post(await stack.enter_async_context(launch.peer(program, url, own_table=name == OWN_TABLE)))
