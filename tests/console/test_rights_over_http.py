"""The tables of rights as a browser meets them: each role, each page, own and foreign merchants, both environments.

The pages come from the tables of the console itself, so a new one is covered without a line here.
"""

from itertools import islice
from pathlib import Path

from guichet.accounts import users
from guichet.console.page_tables import MERCHANT_PAGES, STAFF_PAGES
from guichet.console.sections import MerchantPage, StaffPage
from guichet.db.engine import require
from guichet.domain.merchants import ENVS
from guichet.domain.roles import MERCHANT_ROLES, STAFF_ROLES, MerchantRole, StaffRole, may_as_merchant, may_as_staff
from guichet.settings import Settings
from tests.console.conftest import ConsoleBrowser, ConsoleFixture
from tests.console.page_walk import Walker, console_over_tls, filled, is_static, nobodys
from tests.console.samples import Sample

# Two thousand requests, beside those of all other test runners.

#: What a page does not open without.
_QUERIES = {"/balance/statement.pdf": "?month=2026-01"}
_SEEN = (200, 303)
_REFUSED = (403,)
_ABSENT = (404,)
#: An empty form: done, sent on to a page or to the second factor, or refused in words.
_ANSWERED = (200, 303, 403, 409, 413, 422)


async def _samples(console: ConsoleFixture) -> tuple[Sample, Sample]:
    """The merchant of the test, and a foreign one."""
    await console.invited("first@guichet.example", None, "support")
    samples = []
    for name, word, phone in (("Kora", "ownword", "22997001111"), ("Balafon", "foreignword", "22997009999")):
        merchant = await console.merchant(name)
        await console.invited(f"owner@{word}.example", merchant)
        user = require(await users.by_email(console.service.ctx.db, f"owner@{word}.example"))
        sample = Sample(console, merchant, word, phone, user.id)
        await sample.fill()
        samples.append(sample)
    return samples[0], samples[1]


async def test_a_merchants_team_sees_what_the_table_says(sqlite_settings: Settings, tmp_path: Path) -> None:
    async with console_over_tls(sqlite_settings, tmp_path) as console:
        own, foreign = await _samples(console)
        faults = []
        for role in MERCHANT_ROLES:
            browser = await console.joined(f"{role}@example.com", own.merchant, role)
            walker = await Walker.begin(role, browser, foreign.word, foreign.phone)
            seen = await _walk_own(walker, own, foreign, role)
            await _walk_elsewhere(walker, own, foreign, thorough=role == "owner")
            faults += walker.faults
            if role == "owner":
                assert {page.path for page in MERCHANT_PAGES if page.show} - seen == {"/exports/{number:row}/file"}
        assert faults == [], "\n".join(faults)


async def _walk_own(walker: Walker, own: Sample, foreign: Sample, role: MerchantRole) -> set[str]:
    """Both environments of the own merchant, where the role's right is not the same in both or it is the owner; the
    paths of the pages that were seen."""
    seen, thorough = set(), role == "owner"
    for env, other in (ENVS, ENVS[::-1]):
        for page in MERCHANT_PAGES:
            may, base = may_as_merchant(role, page.right, env), f"{own.base}/{env}"
            if not thorough and env == "test" and may == may_as_merchant(role, page.right, "live"):
                continue
            if is_static(page.path):
                if page.show is not None:
                    found = await walker.get(base + page.path + _QUERIES.get(page.path, ""), _SEEN if may else _REFUSED)
                    seen |= {page.path} if found in _SEEN else set()
                if page.change is not None:
                    await walker.post(base + page.path, _ANSWERED if may else _REFUSED)
                continue
            for address in islice(filled(page.path, own.ids[env]), None if thorough else 1) if page.show else ():
                found = await walker.get(base + address, (*_SEEN, *_ABSENT) if may else _REFUSED)
                seen |= {page.path} if found == 200 else set()
            absent = list(filled(page.path, foreign.ids[env]))
            if thorough:
                absent += [*filled(page.path, own.ids[other]), *(nobodys(page.path) if env == "live" else ())]
            for address in absent if may else absent[:1]:
                # What is not there is not said to who may not do the act.
                await walker.both(page, base + address, _ABSENT if may else _REFUSED, (*_ABSENT, *_REFUSED))
    return seen


async def _walk_elsewhere(walker: Walker, own: Sample, foreign: Sample, *, thorough: bool) -> None:
    """A foreign merchant's live pages. `thorough`: all of its pages and the back office, which no role of a team opens;
    one merchant that is not there, an environment that is none."""
    for page in MERCHANT_PAGES:
        address = next(filled(page.path, foreign.ids["live"]))
        await walker.both(page, f"{foreign.base}/live{address}", _REFUSED)
        if thorough:
            await walker.both(page, f"{foreign.base}/test{address}", _REFUSED)
            await walker.both(page, f"/console/987654321/live{address}", _REFUSED)
            await walker.both(page, f"{own.base}/staging{address}", _ABSENT)
            await walker.both(page, f"/console/{'9' * 5000}/live{address}", _ABSENT)
    for each in STAFF_PAGES if thorough else ():
        await walker.both(each, "/admin" + next(filled(each.path, foreign.of_all)), _REFUSED)


async def test_the_staff_see_what_the_table_says(sqlite_settings: Settings, tmp_path: Path) -> None:
    async with console_over_tls(sqlite_settings, tmp_path) as console:
        one, _ = await _samples(console)
        faults = []
        for role in STAFF_ROLES:
            walker = await Walker.begin(role, await console.joined(f"{role}@example.com", None, role))
            seen = await _walk_back_office(walker, one, role)
            for page in MERCHANT_PAGES:
                for env in ENVS if role == "admin" else ENVS[:1]:
                    await walker.both(page, f"{one.base}/{env}" + next(filled(page.path, one.ids[env])), _REFUSED)
            faults += walker.faults
            if role == "admin":
                assert {page.path for page in STAFF_PAGES if page.show} - seen == set()
        assert faults == [], "\n".join(faults)


async def _walk_back_office(walker: Walker, sample: Sample, role: StaffRole) -> set[str]:
    seen = set()
    for page in STAFF_PAGES:
        may = may_as_staff(role, page.right)
        if is_static(page.path):
            await walker.get("/admin" + page.path, _SEEN if may else _REFUSED)
            seen.add(page.path)
            if page.change is not None:
                await walker.post("/admin" + page.path, _ANSWERED if may else _REFUSED)
            continue
        for address in islice(filled(page.path, sample.of_all), None if role == "admin" else 1):
            found = await walker.get("/admin" + address, (*_SEEN, *_ABSENT) if may else _REFUSED)
            seen |= {page.path} if found == 200 else set()
        for address in nobodys(page.path) if role == "admin" else ():
            # Two numbers of 5 000 digits are too long for any address.
            await walker.both(page, "/admin" + address, (*_ABSENT, 414))
    return seen


async def test_without_a_session_or_a_token_nothing_is_done(sqlite_settings: Settings, tmp_path: Path) -> None:
    async with console_over_tls(sqlite_settings, tmp_path) as console:
        own, _ = await _samples(console)
        stranger = console.browser()
        owner = await console.joined("owner@example.com", own.merchant)
        admin = await console.joined("admin@example.com", None, "admin")
        pages: list[tuple[MerchantPage | StaffPage, str, ConsoleBrowser]] = [
            (page, f"{own.base}/live" + next(filled(page.path, own.ids["live"])), owner) for page in MERCHANT_PAGES
        ]
        pages += [(page, "/admin" + next(filled(page.path, own.of_all)), admin) for page in STAFF_PAGES]
        for page, address, member in pages:
            for method in [name for name, handler in (("GET", page.show), ("POST", page.change)) if handler]:
                answer = await stranger.ask(method, address, {} if method == "POST" else None)
                assert (answer.status, answer.headers["Location"].partition("?")[0]) == (303, "/console/sign-in")
            if page.change is not None:
                answer = await member.ask("POST", address, {"csrf": "x" * 32})
                assert answer.status in (403, 422), address
        assert all(name.startswith("__Host-") for name in owner.cookies)
