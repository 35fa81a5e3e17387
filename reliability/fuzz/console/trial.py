"""The console under hostile requests, on one database: prepares it, sends everything, compares, says what was found.

Three parts, one after the other: what must be refused or only reads (afterwards no row has changed); absurd forms of
the own merchant's team (no row of another merchant has changed, and no live money has moved but what a refund holds);
absurd forms of the staff (no live money has moved).
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from guichet.bootstrap import service
from guichet.context import AppContext
from guichet.db import migrate
from guichet.settings import Settings
from reliability.fuzz import process
from reliability.fuzz.checks import Violation
from reliability.fuzz.console import acts, refused, requests
from reliability.fuzz.console.afterwards import live_postings, moved_money, wrong_sessions
from reliability.fuzz.console.cast import create_people, enter, freshen, invite
from reliability.fuzz.console.checks import PageChecks
from reliability.fuzz.console.fingerprints import differences, rows_of, rows_of_merchant
from reliability.fuzz.console.pages import PageForm, book, read_forms
from reliability.fuzz.console.requests import Scene
from reliability.fuzz.console.stock import approval, comparison, export, own_things, stock
from reliability.fuzz.exchange import Sent, Violated, exchange, send
from reliability.fuzz.known import Known
from reliability.fuzz.process import Held, Process
from reliability.fuzz.recorded import Probe
from reliability.fuzz.sockets import BrokenAnswer, Connection
from reliability.fuzz.trial import MAX_GROWTH_MEGABYTES
from tests.fakes.scripted_provider import ScriptedProvider
from tests.invariants import check_books
from tests.ports import free_port

PUBLIC_URL: Final = "https://pay.example"
#: More than for the other requests, since the connections that write are opened when the first forms are sent.
_MAX_GROWTH_DESCRIPTORS: Final = 16
#: The parts of the requests: those that change nothing, those of the team, and the rest of the staff.
_REFUSED: Final = 0.5
_TEAM: Final = 0.3
_WARM_UP: Final = 0.1
#: Requests between two looks at whether sessions are still fresh.
_BETWEEN: Final = 2_000
#: From so many requests on, everybody signs in by the pages, and the whole team's pages are read for forms.
_LONG: Final = 3_000
_OWN_PAYMENTS: Final = 28
_FOREIGN_WORD: Final = "balafonsecret"
_FOREIGN_PHONE: Final = "22961239871"


@dataclass(frozen=True)
class ConsolePlan:
    """`requests`: to one database. `rest`: as in `fuzz.trial.Plan`."""

    requests: int
    seed: int
    rest: float = 6.0


@dataclass
class ConsoleFound:
    """What the trial on one database found; `faults` is empty when everything held."""

    database: str
    sent: Sent = field(default_factory=Sent)
    before: Held = field(default_factory=lambda: Held(0, 0))
    after: Held = field(default_factory=lambda: Held(0, 0))
    forms: int = 0
    pages: int = 0
    #: Rows compared: of all tables after what may change nothing, and of the foreign merchant.
    rows: int = 0
    foreign_rows: int = 0
    new_rows: int = 0
    faults: list[str] = field(default_factory=list)
    violated: Violated | None = None
    known: Known = field(default_factory=dict)


@dataclass
class _Trial:
    """What the parts of the trial share while the service runs."""

    ctx: AppContext
    served: Process
    scene: Scene
    checks: PageChecks
    plan: ConsolePlan
    found: ConsoleFound
    progress: Callable[[Sent], None]
    foreign_users: tuple[int, ...]

    async def send(self, make: Callable[[int], Probe], first: int, last: int) -> None:
        sent = self.found.sent
        for start in range(first, last, _BETWEEN):
            await freshen(self.ctx, self.scene.cast)
            numbers = range(start, min(start + _BETWEEN, last))
            probes = ((number, make(number)) for number in numbers)
            await send(self.served.port, probes, sent, lambda: self.progress(sent), self.checks.check)


async def run(settings: Settings, plan: ConsolePlan, progress: Callable[[Sent], None]) -> ConsoleFound:
    """`settings`: of an empty database and a data folder of its own."""
    found = ConsoleFound("SQLite" if settings.embedded else "PostgreSQL")
    try:
        async with _prepared(settings, plan, found, progress) as trial:
            with trial.served.errors_told(found.faults):
                await _send_all(trial)
    except* Violated as group:
        violated = next(error for error in _leaves(group) if isinstance(error, Violated))
        found.violated = violated
        found.faults.append(f"request {violated.number} ({violated.probe.kind}): {violated.reason}")
    except* BrokenAnswer as group:
        found.faults += [str(error) for error in _leaves(group)][:5]
    return found


async def replay(settings: Settings, plan: ConsolePlan, file: Path) -> ConsoleFound:
    """Sends the saved request of a failure to a new service."""
    found = ConsoleFound("SQLite" if settings.embedded else "PostgreSQL")
    async with _prepared(settings, plan, found, lambda _: None) as trial:
        again, connection = requests.saved_page_probe(file, found.known), Connection(trial.served.port)
        try:
            answers = await exchange(connection, again)
            found.sent.count(again, answers)
            trial.checks.check(again, answers)
        except (Violation, BrokenAnswer) as error:
            found.faults.append(f"{type(error).__name__}: {error}")
        await connection.close()
        found.faults += trial.served.unexpected()[:5]
    return found


@asynccontextmanager
async def _prepared(
    settings: Settings, plan: ConsolePlan, found: ConsoleFound, progress: Callable[[Sent], None]
) -> AsyncIterator[_Trial]:
    """Merchants and people, the service without worker, and everybody signed in."""
    await migrate.upgrade(settings)
    settings, port = replace(settings, public_url=PUBLIC_URL), free_port()
    provider = {"mtn_benin": ScriptedProvider()}
    # No provider is there: only the pages are asked.
    environ = process.environment(settings, port, process.write_providers_file(settings.home, 1))
    environ["GUICHET_PUBLIC_URL"] = PUBLIC_URL
    async with service(settings, accounts=provider, routes={"mtn": ["mtn_benin"]}) as opened, AsyncExitStack() as stack:
        ctx = opened.ctx
        own = await stock(ctx, "Boutique Kora", "kora", "22997001111", _OWN_PAYMENTS)
        foreign = await stock(ctx, _FOREIGN_WORD, _FOREIGN_WORD, _FOREIGN_PHONE, 3)
        accounts = await create_people(ctx, own, foreign)
        for each in (own, foreign):
            await invite(ctx, each)
        for each, owner in ((own, "owner"), (foreign, "foreigner")):
            await export(ctx, each, accounts[owner][0])
        await approval(ctx, own, accounts["staff finance"][0])
        await comparison(ctx, own, accounts["staff finance"][0])
        own.of_staff["staff/user"] = [str(accounts["colleague"][0].id)]
        own.of_staff["users/user"] = [str(accounts["leaver"][0].id)]
        served = await stack.enter_async_context(process.guichet("serve", port, environ, settings.home, "--no-worker"))
        long = plan.requests >= _LONG
        cast = await enter(ctx, port, accounts, tuple(accounts) if long else ("owner",))
        await own_things(ctx, foreign, accounts["foreigner"][0], cast.foreigner.session)
        pages = book(own, foreign)
        names = {**own.names, **foreign.names, **cast.names}
        scene = Scene(own, foreign, cast, pages, PUBLIC_URL, names)
        await _read_forms(scene, port, long=long)
        found.known, found.forms = names, len(pages.forms) + len(pages.staff_forms)
        found.pages = len(pages.own) + len(pages.staff)
        checks = PageChecks(PUBLIC_URL, foreign, [_FOREIGN_PHONE, *_secrets(names)])
        yield _Trial(ctx, served, scene, checks, plan, found, progress, (accounts["foreigner"][0].id,))


def _secrets(names: Known) -> list[str]:
    return [value for name, value in names.items() if name.startswith("cookie_")]


async def _read_forms(scene: Scene, port: int, *, long: bool) -> None:
    """The forms that the head of the team and that of the staff see; in a long trial, those of everybody."""
    cast, pages = scene.cast, scene.book
    heads = ["owner", "staff admin"]
    for person in cast.people.values() if long else [cast.people[name] for name in heads]:
        seen = [
            each
            for each in (pages.staff if person.is_staff else pages.own)
            if each.page.show and requests.may(person, each)
        ]
        if not long:
            seen = [each for each in seen if each.env != "test" or each.page.path in ("/webhooks", "/developers")]
        forms = await read_forms(port, [(person, [each.path for each in seen])])
        kept = pages.staff_forms if person.is_staff else pages.forms
        kept.extend(form for form in forms if form not in kept and not _ends_a_role(form, scene))


def _ends_a_role(form: PageForm, scene: Scene) -> bool:
    """Whether the form would take away what the trial needs: the place of one of its people."""
    leavers = {str(each.user_id) for each in scene.cast.leavers}
    user = dict(form.fields).get("user")
    return user is not None and user not in leavers


async def _send_all(trial: _Trial) -> None:
    plan, found = trial.plan, trial.found
    foreign = (trial.scene.foreign.merchant.id, trial.foreign_users)
    everything, theirs = await rows_of(trial.ctx), await rows_of_merchant(trial.ctx, *foreign)
    live = await live_postings(trial.ctx)
    first = int(plan.requests * _REFUSED)
    last = first + int(plan.requests * _TEAM)
    warm = int(first * _WARM_UP)

    await trial.send(lambda number: refused.refused(plan.seed, number, trial.scene), 0, warm)
    found.before = await trial.served.held_at_rest(plan.rest)
    await trial.send(lambda number: refused.refused(plan.seed, number, trial.scene), warm, first)
    after = await rows_of(trial.ctx)
    found.faults += [f"changed by what must change nothing: {each}" for each in differences(everything, after)]

    await trial.send(lambda number: acts.act(plan.seed, number, trial.scene, staff=False), first, last)
    found.faults += await wrong_sessions(trial.served.port, trial.scene.cast)
    found.faults += [
        f"changed by another merchant's team: {each}"
        for each in differences(theirs, await rows_of_merchant(trial.ctx, *foreign))
    ]

    found.faults += await moved_money(trial.ctx, trial.scene.own.merchant.id, live)
    live = await live_postings(trial.ctx)

    await trial.send(lambda number: acts.act(plan.seed, number, trial.scene, staff=True), last, plan.requests)
    found.faults += await wrong_sessions(trial.served.port, trial.scene.cast)
    if await live_postings(trial.ctx) != live:
        found.faults.append("the staff moved live money without a second person")
    await check_books(trial.ctx.db)
    found.after = await trial.served.held_at_rest(plan.rest)
    _judge_growth(found)
    end = await rows_of(trial.ctx)
    found.rows = sum(each.total() for each in everything.values())
    found.foreign_rows = sum(each.total() for each in theirs.values())
    found.new_rows = sum(each.total() for each in end.values()) - found.rows


def _judge_growth(found: ConsoleFound) -> None:
    grown = found.after.megabytes - found.before.megabytes
    if grown > MAX_GROWTH_MEGABYTES:
        found.faults.append(f"memory grew by {grown:.1f} MB")
    more = found.after.descriptors - found.before.descriptors
    if more > _MAX_GROWTH_DESCRIPTORS:
        found.faults.append(f"{more} more descriptors are open")


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
