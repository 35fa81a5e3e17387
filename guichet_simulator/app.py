"""The simulator: the operators' APIs over real HTTP, for development and tests. No money, no network but its callbacks.

**Start it.** `guichet simulator` serves it alone; the development server mounts it. Both see the same addresses:

    app = create_simulator(Path("simulator.sqlite"), public_url="http://127.0.0.1:8000/simulator",
                           clock=SystemClock(), callbacks={"feexpay": Dashboard(callback_url="http://…/callback/x")})

`public_url` is where the outside world finds the simulator, `/simulator` included. Mounted with
`Mount("/simulator", app)` or served alone, the same paths answer. A mounted application gets no lifespan events: its
parent enters `app.router.lifespan_context(app)`, or it wakes at its first request only.

**Base URL of a connection**: `{public_url}/{family}`, then the operator's own path:

    /simulator/feexpay/api/transactions/public/requesttopay/mtn      /simulator/mtn/collection/v1_0/requesttopay
    /simulator/wave/v1/checkout/sessions                             /simulator/pawapay/v2/deposits
    /simulator/orange/orange-money-webpay/ml/v1/webpayment           /simulator/sonatel/api/eWallet/v1/payments/onestep
    /simulator/stripe/v1/checkout/sessions                           /simulator/coris/external/v1/api/send-code-otp

**Credentials**: any, except none and one that contains "invalid" (401). Secrets that sign are in `SECRETS`.
**Callbacks** go to the URL of the call where the API has one (mtn, orange), else to the family's `Dashboard`.

**Play by hand**: `/simulator/phone` lists what waits for a customer. **Play by number**: `scenarios.py`.
**Control** (JSON, for tests):

    POST   /simulator/control/next          {"family", "scenario", "call"?, "times"?, "after"?, "delay"?}
             the next `times` calls (1; null = until deleted) of `call` ("debit", "credit", "status", "token") meet the
             scenario; `after`: seconds until it is decided, `delay`: seconds the slow answer takes
    DELETE /simulator/control/next          forget what was forced
    GET    /simulator/control/transactions  ?family=&reference=&kind=   what operators hold, newest first, and `books`:
             what really moved, by family and client reference: {"family", "reference", "debits", "debited", "credits",
             "credited", "currency"}; amounts are strings in the main unit. The judge of "no double debit".
    POST   /simulator/control/transactions/{id}/decide    {"decision": "approve" | "refuse", "reason"?}
    GET    /simulator/control/callbacks     ?reference=   notifications queued and sent, with what was answered
    POST   /simulator/control/callbacks     {"transaction", "claim", "forged"?}   send one now, true or not
    GET    /simulator/control/calls         every call received: family, method, path, status, time
    POST   /simulator/control/dashboard     {"family", "callback_url"?, "secret"?}
    GET    /simulator/control/scenarios     the table
    POST   /simulator/control/reset         forget everything
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guichet.clock import Clock
from guichet_simulator import control, phone
from guichet_simulator.context import Dashboard, Desk
from guichet_simulator.registry import SECRETS, families
from guichet_simulator.store import Store

__all__ = ["SECRETS", "Dashboard", "create_simulator"]


def create_simulator(
    state: Path | None,
    *,
    public_url: str,
    clock: Clock,
    callbacks: Mapping[str, Dashboard] | None = None,
) -> Starlette:
    """Build the simulator. `state`: its SQLite file, None for memory; `callbacks`: dashboards by family."""
    desk = Desk(Store(state), clock, public_url, {**_default_dashboards(), **(callbacks or {})})
    routes: list[BaseRoute] = [*phone.routes(desk), *control.routes(desk)]
    for family in families(desk):
        desk.families[family.name] = family
        routes.append(Mount(f"/{family.name}", app=_Recorded(desk, family.name, family.routes())))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        desk.wake()
        yield
        await desk.close()

    return Starlette(routes=[Mount("/simulator", routes=routes), *routes], lifespan=lifespan)


def _default_dashboards() -> dict[str, Dashboard]:
    return {family: Dashboard(secret=secret) for family, secret in SECRETS.items()}


class _Recorded:
    """Wakes the loop, and writes down each call and how it was answered (no status: the connection was dropped)."""

    def __init__(self, desk: Desk, family: str, routes: list[BaseRoute]) -> None:
        self._desk = desk
        self._family = family
        self._app: ASGIApp = Starlette(routes=routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._desk.wake()
        path = scope["path"].partition(f"/{self._family}")[2]
        values = {"family": self._family, "method": scope["method"], "path": path, "at": self._desk.clock.now()}
        call = self._desk.store.insert("calls", values)

        async def recording(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._desk.store.run("UPDATE calls SET status = ? WHERE id = ?", message["status"], call)
            await send(message)

        await self._app(scope, receive, recording)
