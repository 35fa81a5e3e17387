"""The simulated phone: what a customer would see and press. Plain HTML that works without JavaScript."""

from functools import cache
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from guichet.clock import to_datetime
from guichet.domain import money
from guichet_simulator.context import SimulatorContext
from guichet_simulator.models import FAILED, PENDING, SUCCEEDED, FinalState, Transaction

if TYPE_CHECKING:
    from jinja2 import Environment

_MAX_WAITING: Final = 50
_MAX_PAST: Final = 10

#: What each button does.
DECISIONS: Final[dict[str, tuple[FinalState, str | None]]] = {
    "approve": (SUCCEEDED, None),
    "refuse": (FAILED, "rejected_by_payer"),
    "insufficient": (FAILED, "insufficient_funds"),
}

_STATES: Final = {"pending": "en attente", "succeeded": "approuvé", "failed": "refusé", "expired": "expiré"}


def routes(ctx: SimulatorContext) -> list[BaseRoute]:
    phone = _Phone(ctx)
    return [
        Route("/", phone.home),
        Route("/phone", phone.requests),
        Route("/phone/{id:int}", phone.request),
        Route("/phone/{id:int}", phone.press, methods=["POST"]),
    ]


def hosted_page(ctx: SimulatorContext, tx: Transaction) -> Response:
    """The provider's own page where the customer confirms; it then sends the customer back to the client's site."""
    return page(ctx, "request.html", tx=tx, hosted=True)


def page(ctx: SimulatorContext, template: str, *, status: int = 200, **values: object) -> Response:
    titles = {name: provider.title for name, provider in ctx.providers.items()}
    html = _pages().get_template(template).render(root=ctx.public_url, titles=titles, states=_STATES, **values)
    return HTMLResponse(html, status_code=status, headers={"Cache-Control": "no-store"})


@cache
def _pages() -> "Environment":
    """Made for the first page: a server in development has the simulator, and mostly nobody looks at its telephone."""
    from jinja2 import Environment, PackageLoader  # noqa: PLC0415

    pages = Environment(loader=PackageLoader("guichet_simulator"), autoescape=True)
    pages.filters["sum_of_money"] = lambda tx: money.french(tx.amount, tx.currency)
    pages.filters["hour"] = lambda instant: f"{to_datetime(instant):%H:%M:%S} UTC"
    return pages


class _Phone:
    def __init__(self, ctx: SimulatorContext) -> None:
        self._ctx = ctx

    async def home(self, request: Request) -> Response:
        return RedirectResponse(f"{self._ctx.public_url}/phone", status_code=303)

    async def requests(self, request: Request) -> Response:
        self._ctx.apply_due_decisions()
        store = self._ctx.store
        waiting = store.select("state = 'pending' AND kind = 'debit'")[:_MAX_WAITING]
        past = store.select("state != 'pending' AND kind = 'debit'")[:_MAX_PAST]
        messages = store.rows("SELECT * FROM messages ORDER BY id DESC LIMIT 5")
        return page(self._ctx, "phone.html", waiting=waiting, past=past, messages=messages)

    async def request(self, request: Request) -> Response:
        tx = self._find(request)
        if tx is None:
            return page(self._ctx, "unknown.html", status=404)
        return page(self._ctx, "request.html", tx=tx, hosted=False)

    async def press(self, request: Request) -> Response:
        """Form fields: `decision` (a key of DECISIONS, or "cancel"); `hosted` when pressed on a provider's page."""
        tx = self._find(request)
        if tx is None:
            return page(self._ctx, "unknown.html", status=404)
        form = await request.form()
        decision, hosted = str(form.get("decision")), "hosted" in form
        if decision in DECISIONS and tx.state == PENDING:
            self._ctx.decide(tx, *DECISIONS[decision])
            tx = self._ctx.store.get(tx.id)
        onward = tx.detail.get("cancel_url" if decision == "cancel" or tx.state != SUCCEEDED else "success_url")
        may_try_again = hosted and tx.state == PENDING and decision != "cancel"
        if hosted and onward and not may_try_again:
            return RedirectResponse(onward, status_code=303)
        back = tx.detail["page_url"] if may_try_again else f"{self._ctx.public_url}/phone/{tx.id}"
        return RedirectResponse(back, status_code=303)

    def _find(self, request: Request) -> Transaction | None:
        self._ctx.apply_due_decisions()
        return self._ctx.store.known(request.path_params["id"])
