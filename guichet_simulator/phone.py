"""The simulated phone: what a customer would see and press. Plain HTML that needs no JavaScript."""

from typing import Final

from jinja2 import Environment, PackageLoader
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from guichet.clock import to_datetime
from guichet.domain import money
from guichet_simulator.context import Desk
from guichet_simulator.store import FAILED, PENDING, SUCCEEDED, State, Transaction

_PAGES: Final = Environment(loader=PackageLoader("guichet_simulator"), autoescape=True)
_PAGES.filters["sum_of_money"] = lambda tx: money.french(tx.amount, tx.currency)
_PAGES.filters["hour"] = lambda instant: f"{to_datetime(instant):%H:%M:%S} UTC"
_LISTED: Final = 50

#: Button → what it does.
DECISIONS: Final[dict[str, tuple[State, str | None]]] = {
    "approve": (SUCCEEDED, None),
    "refuse": (FAILED, "rejected_by_payer"),
    "insufficient": (FAILED, "insufficient_funds"),
}

_STATES: Final = {"pending": "en attente", "succeeded": "approuvé", "failed": "refusé", "expired": "expiré"}


def routes(desk: Desk) -> list[BaseRoute]:
    phone = _Phone(desk)
    return [
        Route("/", phone.home),
        Route("/phone", phone.requests),
        Route("/phone/{id:int}", phone.request),
        Route("/phone/{id:int}", phone.press, methods=["POST"]),
    ]


def hosted_page(desk: Desk, tx: Transaction) -> Response:
    """A page of the operator's own where the customer confirms; it then leads back to the client's site."""
    return page(desk, "request.html", tx=tx, hosted=True)


def page(desk: Desk, template: str, *, status: int = 200, **values: object) -> Response:
    titles = {name: getattr(family, "title", name) for name, family in desk.families.items()}
    html = _PAGES.get_template(template).render(root=desk.public_url, titles=titles, states=_STATES, **values)
    return HTMLResponse(html, status_code=status, headers={"Cache-Control": "no-store"})


class _Phone:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def home(self, request: Request) -> Response:
        return RedirectResponse(f"{self._desk.public_url}/phone", status_code=303)

    async def requests(self, request: Request) -> Response:
        self._desk.wake()
        self._desk.let_time_pass()
        store = self._desk.store
        waiting = store.select("state = 'pending' AND kind = 'debit'")[:_LISTED]
        past = store.select("state != 'pending' AND kind = 'debit'")[:10]
        messages = store.rows("SELECT * FROM messages ORDER BY id DESC LIMIT 5")
        return page(self._desk, "phone.html", waiting=waiting, past=past, messages=messages)

    async def request(self, request: Request) -> Response:
        tx = self._find(request)
        if tx is None:
            return page(self._desk, "unknown.html", status=404)
        return page(self._desk, "request.html", tx=tx, hosted=False)

    async def press(self, request: Request) -> Response:
        """Form fields: `decision` (a key of DECISIONS, or "cancel"), `hosted` when pressed on an operator's page."""
        tx = self._find(request)
        if tx is None:
            return page(self._desk, "unknown.html", status=404)
        form = await request.form()
        decision, hosted = str(form.get("decision")), "hosted" in form
        if decision in DECISIONS and tx.state == PENDING:
            self._desk.decide(tx, *DECISIONS[decision])
            tx = self._desk.store.get(tx.id)
        onward = tx.detail.get("cancel_url" if decision == "cancel" or tx.state != SUCCEEDED else "success_url")
        tries_again = hosted and tx.state == PENDING and decision != "cancel"
        if hosted and onward and not tries_again:
            return RedirectResponse(onward, status_code=303)
        back = tx.detail["page_url"] if tries_again else f"{self._desk.public_url}/phone/{tx.id}"
        return RedirectResponse(back, status_code=303)

    def _find(self, request: Request) -> Transaction | None:
        self._desk.wake()
        self._desk.let_time_pass()
        found = self._desk.store.select("id = ?", request.path_params["id"])
        return found[0] if found else None
