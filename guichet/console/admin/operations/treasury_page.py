"""Our own money: where it is and whose, what differs from what is stated, and the movements that people record."""

from typing import ClassVar, Final, Literal

from starlette.responses import Response

from guichet.accounts import approvals
from guichet.back_office import money_acts
from guichet.console.downloads import attachment, file_name
from guichet.console.forms import Reason
from guichet.console.page_request import FormFault, StaffRequest
from guichet.db.references import new_reference, parse_reference
from guichet.domain.approvals import ActRequest, Arguments
from guichet.domain.audit_log import CONSOLE
from guichet.domain.money import CURRENCIES, Currency, parse_typed
from guichet.domain.treasury import RECORDED_KINDS, STATEMENT, MovementKind, TreasuryMovement
from guichet.exports.treasury import movements_file, places_file
from guichet.pages.fields import Fields, Lenient
from guichet.pages.views import View
from guichet.treasury import movements, readings, repository
from guichet.treasury.position import Position, positions
from guichet.treasury.readings import Reading

_PATH: Final = "/treasury"


class TreasuryView(View, frozen=True):
    """`readings`: the last one of each place. `reference`: of the movement that the form records, so that it counts
    once."""

    positions: list[Position]
    readings: dict[str, Reading]
    movements: list[TreasuryMovement]
    reference: str
    kinds: ClassVar = (*RECORDED_KINDS, STATEMENT)
    currencies: ClassVar = CURRENCIES


class TreasuryForm(Fields):
    """Records a movement or a statement, or ends an announced movement (`end`)."""

    kind: Lenient[MovementKind | Literal["statement"]] = None
    currency: Lenient[Currency] = None
    amount: str = ""
    source: str = ""
    to: str = ""
    announced: str = ""
    reference: str = ""
    end: Lenient[Literal["posted", "cancelled"]] = None
    reason: Reason = None


async def show(request: StaffRequest) -> Response:
    place_readings = await _readings(request)
    view = TreasuryView(
        positions=await positions(request.db, place_readings),
        readings=place_readings,
        movements=await repository.latest(request.db),
        reference=new_reference(request.now()),
    )
    return request.page("admin/operations/treasury.html", view)


async def change(request: StaffRequest) -> Response:
    """Another person approves what is recorded, unless it is small (`money_acts.needs_two_people`)."""
    form = await request.form(TreasuryForm)
    request.require("incidents.decide")
    reference = parse_reference(form.reference)
    if form.reason is None or reference is None:
        raise FormFault(request.text("operations.reason_missing"))
    if form.end is not None:
        await movements.end(request.ctx, reference, form.end, request.actor, form.reason)
        return request.done(request.admin_url(_PATH), "recorded")
    act_request = ActRequest("treasury.record", reference, _arguments(request, form), form.reason)
    if not money_acts.needs_two_people(request.ctx.settings, act_request):
        await approvals.do_alone(request.ctx, act_request, request.person, CONSOLE)
        return request.done(request.admin_url(_PATH), "recorded")
    approval = await approvals.ask(request.ctx, act_request, request.person, CONSOLE)
    return request.done(request.admin_url(f"/approvals/{approval.id}"), "asked")


def _arguments(request: StaffRequest, form: TreasuryForm) -> Arguments:
    amount = parse_typed(form.amount, 2)
    if form.kind is None or form.currency is None or amount is None:
        raise FormFault(request.text("treasury.incomplete"))
    return {
        "kind": form.kind,
        "currency": form.currency,
        "amount": amount,
        "announced": form.announced == "yes",
        "from": form.source.strip(),
        "to": form.to.strip(),
    }


async def download_places(request: StaffRequest) -> Response:
    place_readings = await _readings(request)
    return _file(places_file(await positions(request.db, place_readings), place_readings), "places")


async def download_movements(request: StaffRequest) -> Response:
    """The latest, as the page shows them."""
    return _file(movements_file(await repository.latest(request.db)), "movements")


def _file(content: bytes, name: str) -> Response:
    return attachment(content, "text/csv; charset=utf-8", file_name("treasury", name, suffix="csv"))


async def _readings(request: StaffRequest) -> dict[str, Reading]:
    return {reading.place: reading for reading in await readings.latest(request.db, request.now())}
