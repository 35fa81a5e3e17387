"""The simulator: the providers' APIs over real HTTP, for development and tests. No money moves.

**Start it.** `guichet simulator` serves it alone; the development server mounts it. The addresses are the same:

    app = create_simulator(Path("simulator.sqlite"), public_url="http://127.0.0.1:8000/simulator",
                           clock=SystemClock(), callbacks={"feexpay": Dashboard(callback_url="http://…/callback/x")})

`public_url` is the simulator's address from outside, `/simulator` included. Mounted with `Mount("/simulator", app)` or
served alone, it answers on the same paths. A mounted application gets no lifespan events: either its parent enters
`app.router.lifespan_context(app)`, or its background task starts with the first request.

**Base URL of an account**: `{public_url}/{provider}`, then the provider's own path:

    /simulator/feexpay/api/transactions/public/requesttopay/mtn      /simulator/mtn/collection/v1_0/requesttopay
    /simulator/wave/v1/checkout/sessions                             /simulator/pawapay/v2/deposits
    /simulator/orange/orange-money-webpay/ml/v1/webpayment           /simulator/sonatel/api/eWallet/v1/payments/onestep
    /simulator/stripe/v1/checkout/sessions                           /simulator/coris/external/v1/api/send-code-otp
    /simulator/paydunya/api/v1/checkout-invoice/create

**Credentials**: every credential is accepted, except an empty one and one that contains "invalid" (401). `SECRETS` has
the secrets that sign callbacks. A key of Wave belongs to one wallet: `wave_sn_…`, `wave_ci_…`, `wave_bf_…` and
`wave_ml_…` take the numbers of their country only and see their own transactions; a key that names no country takes
every number.
**Callbacks** go to the URL in the request where the API has one (mtn, orange, paydunya), else to the dashboard's.
**The dashboard** (`POST /simulator/control/dashboard`) makes a provider as strict as a real account can be:

    signing_secret   wave: refuse every request that is not signed with it, GET too
    request_keys     pawapay: {key id: public key in PEM}; refuse deposits, refunds and payouts without their signature
    credentials      mtn, mtn_new_platform: {API user or subscription key: [products]}; refuse every other use
    float_empty      true: our balance is empty, payouts are refused (Stripe keeps refunds until it is filled)
    float_ambiguous  true: by a code that may mean the payee too (feexpay, mtn, paydunya, stripe; wave in any case)
    held_in          stripe: the currency into which it converts francs, with a fee; empty: none
    company          our key leads to another account now, of this name: what the one before made is unknown to it

**Not promised**, so that a client cannot rely on it: the order of FeexPay's history, Sonatel's list and Wave's
searches, and where Sonatel's list stands in its response.

**By hand**: `/simulator/phone` lists the requests that wait for a customer. **By number**: see `scenarios.py`.
**Control API** (JSON, for tests; `family` is the name of a provider):

    POST   /simulator/control/next          {"family", "scenario", "call"?, "times"?, "after"?, "delay"?}
             force the scenario on the next `times` calls (1; null: until deleted) of `call` ("debit", "credit",
             "status", "token"). `after`: seconds until the transaction is final, `delay`: seconds of a slow response
    DELETE /simulator/control/next          forget what was forced
    GET    /simulator/control/transactions  ?family=&reference=&kind=   what the providers show, newest first, and
             `books`, what really moved, by provider and client reference: {"family", "reference", "debits", "debited",
             "credits", "credited", "currency"}; amounts are texts in main units. `books` proves "no double debit".
    POST   /simulator/control/transactions/{id}/decide    {"decision": "approve" | "refuse", "reason"?, "payer"?,
             "silent"?}   `silent`: no callback tells of it
    POST   /simulator/control/transactions/{id}/dispute   {"status", "reason"?, "amount"?}   the bank contests a card
             payment (needs_response, warning_needs_response), or decides (won, lost, prevented)
    POST   /simulator/control/transactions/{id}/undo      what was final turns into its opposite, with a callback
    GET    /simulator/control/callbacks     ?reference=   callbacks queued and sent, with the status that answered
    POST   /simulator/control/callbacks     {"transaction", "claim", "forged"?}   send one now, true or not
    GET    /simulator/control/calls         every call received: family, method, path, status, time
    POST   /simulator/control/dashboard     {"family", "callback_url"?, "secret"?, and the settings above}
    GET    /simulator/control/scenarios     the table
    POST   /simulator/control/reset         forget everything
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guichet.clock import Clock
from guichet_simulator import control, phone
from guichet_simulator.background import BackgroundTask
from guichet_simulator.base import SimulatedProvider
from guichet_simulator.context import Dashboard, SimulatorContext
from guichet_simulator.coris.provider import Coris
from guichet_simulator.fedapay.provider import FedaPay
from guichet_simulator.feexpay.provider import FeexPay
from guichet_simulator.http_helpers import Refused
from guichet_simulator.mtn.provider import Mtn, MtnNewPlatform
from guichet_simulator.orange.provider import Orange
from guichet_simulator.pawapay.provider import PawaPay
from guichet_simulator.paydunya.provider import PayDunya
from guichet_simulator.sonatel.provider import Sonatel
from guichet_simulator.store import Store
from guichet_simulator.stripe.provider import Stripe
from guichet_simulator.wave.provider import Wave

PROVIDERS: Final[tuple[type[SimulatedProvider], ...]] = (
    FeexPay, Mtn, MtnNewPlatform, Wave, PawaPay, Orange, Sonatel, Stripe, Coris, PayDunya, FedaPay,
)  # fmt: skip

SECRETS: Final = {provider.name: provider.signing_key for provider in PROVIDERS if provider.signing_key}


__all__ = ["SECRETS", "Dashboard", "create_simulator"]


def create_simulator(
    state: Path | None,
    *,
    public_url: str,
    clock: Clock,
    callbacks: Mapping[str, Dashboard] | None = None,
    at_root: str | None = None,
) -> Starlette:
    """Build the simulator. `state`: its SQLite file, None for memory; `callbacks`: the dashboard of each provider.

    `at_root`: the provider whose paths also stand at the root of the host, for clients that cannot be given a base URL
    with a path (`wave-business-api` drops it). Raises ValueError when there is no such provider.
    """
    dashboards = {provider.name: Dashboard(secret=provider.signing_key) for provider in PROVIDERS}
    ctx = SimulatorContext(Store(state), clock, public_url, dashboards | dict(callbacks or {}))
    background = BackgroundTask(ctx)
    routes: list[BaseRoute] = []
    root: list[BaseRoute] = []
    for provider_class in PROVIDERS:
        provider = provider_class(ctx)
        ctx.providers[provider.name] = provider
        recorder = _CallRecorder(ctx, provider.name, provider.routes())
        routes.append(Mount(f"/{provider.name}", app=recorder))
        if provider.name == at_root:
            root = [Mount("/", app=recorder)]
    if at_root is not None and not root:
        raise ValueError(f"no provider is called {at_root}: {', '.join(ctx.providers)}")
    routes += [*phone.routes(ctx), *control.routes(ctx)]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        background.start()
        yield
        await background.stop()
        ctx.store.close()

    app = Starlette(
        routes=[Mount("/simulator", routes=routes), *routes, *root],
        middleware=[Middleware(_StartBackground, background)],
        lifespan=lifespan,
    )
    app.state.store = ctx.store  # For whoever runs it in its own process, and looks into it all the time.
    return app


class _StartBackground:
    """Starts the background task with the first request."""

    def __init__(self, app: ASGIApp, background: BackgroundTask) -> None:
        self._app = app
        self._background = background

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._background.start()
        await self._app(scope, receive, send)


async def _respond_to_refused(_: Request, refused: Exception) -> Response:
    assert isinstance(refused, Refused)
    return refused.response


class _CallRecorder:
    """Stores each call and the status of its response (none: the connection was dropped)."""

    def __init__(self, ctx: SimulatorContext, provider: str, routes: list[BaseRoute]) -> None:
        self._ctx = ctx
        self._provider = provider
        self._app = ExceptionMiddleware(Router(routes), {Refused: _respond_to_refused})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix(scope["root_path"])
        values = {"provider": self._provider, "method": scope["method"], "path": path, "at": self._ctx.clock.now()}
        store = self._ctx.store
        store.begin()  # One transaction of all that is written until the response: a commit is the dearest statement.
        call = store.insert("calls", values)

        async def record_status(message: Message) -> None:
            if message["type"] == "http.response.start":
                store.run("UPDATE calls SET status = ? WHERE id = ?", message["status"], call)
                store.commit()
            await send(message)

        await self._app(scope, receive, record_status)
