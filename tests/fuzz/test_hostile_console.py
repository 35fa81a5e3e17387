"""The part of the trial "Hostile input" that is about the console: a short slice, and that its checks see faults."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import insert, update

from guichet.db.tables import merchant_notes, payments
from guichet.domain.merchants import ENVS, Merchant
from guichet.pages.page_request import HEADERS
from guichet.settings import Settings
from reliability.fuzz.checks import Violation
from reliability.fuzz.console.acts import act
from reliability.fuzz.console.cast import Cast, Person
from reliability.fuzz.console.checks import PageChecks
from reliability.fuzz.console.fingerprints import differences, rows_of, rows_of_merchant
from reliability.fuzz.console.pages import PageForm, addresses, book
from reliability.fuzz.console.refused import refused
from reliability.fuzz.console.requests import PageProbe, Scene, saved_page_probe
from reliability.fuzz.console.stock import Stock
from reliability.fuzz.console.trial import ConsolePlan, run
from reliability.fuzz.exchange import Violated
from reliability.fuzz.failure import save, saved_kind
from reliability.fuzz.sockets import Answer
from tests.db.rows import PAYMENT
from tests.service_fixture import ServiceFixture

SEED = 20_261_123
SITE = "https://pay.example"
POLICY = ("content-security-policy", "default-src 'none'; style-src 'none'")
ASKED = PageProbe(
    "console: queries", b"GET /console/1/live?q=%1B HTTP/1.1", "GET", "/console/1/live", allowed=(200, 303)
)


@pytest.mark.slow
@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_hostile_requests_to_the_console_find_nothing(settings: Settings) -> None:
    """On the database that refuses more: NUL, halves of surrogate pairs, numbers of more than 64 bits."""
    plan = ConsolePlan(requests=100, seed=SEED, rest=0.1)

    found = await run(settings, plan, lambda _: None)

    assert found.faults == []
    assert found.sent.kinds.total() == plan.requests
    assert len(found.sent.kinds) > 12, "too poor to tell anything"
    assert {"200", "303", "403", "404", "422"} <= set(found.sent.statuses), "too poor to tell anything"
    assert found.pages > 90
    assert found.forms > 40
    assert found.foreign_rows > 50
    assert found.new_rows > 0


def page(body: str, *more: tuple[str, str], status: int = 200, kind: str = "text/html; charset=utf-8") -> Answer:
    headers = [(name.lower(), value) for name, value in HEADERS.items()]
    return Answer(status, [*headers, ("content-type", kind), *more], body.encode())


def checks() -> PageChecks:
    return PageChecks(SITE, fake_stock(2, "foreignword"), ["22961239871"])


@pytest.mark.parametrize(
    ("probe", "answer", "said"),
    [
        (ASKED, page("x", POLICY, status=500), "status 500"),
        (ASKED, page("x", POLICY, status=403), "status 403"),
        (ASKED, page("x"), "without its content security policy"),
        (ASKED, Answer(200, [POLICY, ("content-type", "text/html")], b"x"), "a page without Cache-Control"),
        (ASKED, page("<p>".join(str(number) for number in range(20_000)), POLICY), "bytes"),
        (ASKED, page("<zq7>", POLICY), "markup"),
        (ASKED, page('<p onclick="zq7(1)">', POLICY), "<p onclick>"),
        (ASKED, page("<script>1</script>", POLICY), "script"),
        (ASKED, page('<a href="https://evil.example/">', POLICY), "leads to"),
        (ASKED, page("42049", POLICY), "calculated template"),
        (ASKED, page("a\u202eb", POLICY), "control character"),
        (ASKED, page("of foreignword", POLICY), "it shows b'foreignword'"),
        (ASKED, page("x", POLICY, ("location", "/console/22961239871")), "it shows b'22961239871'"),
        (ASKED, page("", ("location", "//evil.example"), status=303), "a redirect to"),
        (ASKED, page("", ("location", "/consolex"), status=303), "a redirect to"),
        (replace(ASKED, person="owner"), page("", ("location", "/console/sign-in"), status=303), "has ended"),
        (replace(ASKED, to_sign_in=True), page("", ("location", "/console/factor"), status=303), "nobody"),
        (ASKED, page("x", POLICY, ("set-cookie", "guichet-session=x; Secure")), "none of ours"),
        (
            ASKED,
            page("x", POLICY, ("set-cookie", "__Host-guichet-session=x; Secure; HttpOnly; SameSite=lax")),
            "a session for somebody who is nobody",
        ),
        (ASKED, page("a,b\n=1+1,2\n", kind="text/csv; charset=utf-8"), "a formula in a file"),
        (ASKED, page("a,b\n-cmd,2\n", kind="text/csv; charset=utf-8"), "a formula in a file"),
    ],
)
def test_the_checks_see_what_is_wrong(probe: PageProbe, answer: Answer, said: str) -> None:
    with pytest.raises(Violation, match=said):
        checks().check(probe, [answer])


def test_the_checks_let_good_answers_pass() -> None:
    cookie = ("set-cookie", "__Host-guichet-session=x; Secure; HttpOnly; SameSite=lax")
    good = [
        page("&lt;zq7&gt; \x1b, which was typed", POLICY),
        page("", POLICY, ("location", "/console/1/live?a=b"), status=303),
        page("a;b\n-1,5;2\n'=1+1;3\n", kind="text/csv; charset=utf-8"),
    ]
    for answer in good:
        checks().check(ASKED, [answer])
    checks().check(replace(ASKED, person="owner"), [page("x", POLICY, cookie)])
    checks().check(replace(ASKED, hides=False), [page("of foreignword", POLICY)])


async def test_a_row_that_changed_is_seen(sqlite_service: ServiceFixture) -> None:
    ctx = sqlite_service.ctx
    own, foreign = await sqlite_service.merchant("Kora"), await sqlite_service.merchant("Balafon")
    row = {**PAYMENT, "merchant_id": foreign.id}
    await ctx.db.write(insert(payments).values(**row))
    everything, theirs = await rows_of(ctx), await rows_of_merchant(ctx, foreign.id, [])
    note = {"merchant_id": own.id, "text": "x", "author": "a", "created_at": 1}
    await ctx.db.write(insert(merchant_notes).values(**note))
    assert [each.partition(":")[0] for each in differences(everything, await rows_of(ctx))] == ["merchant_notes"]
    assert differences(theirs, await rows_of_merchant(ctx, foreign.id, [])) == []
    await ctx.db.write(update(payments).values(fee_amount=6, total_amount=506))
    assert [each.partition(":")[0] for each in differences(theirs, await rows_of_merchant(ctx, foreign.id, []))] == [
        "payments"
    ]


def test_a_seed_makes_the_same_requests_again() -> None:
    scene = fake_scene()
    kinds: Counter[str] = Counter()
    makers: list[Callable[[int], PageProbe]] = [
        lambda number: refused(SEED, number, scene),
        lambda number: act(SEED, number, scene, staff=False),
        lambda number: act(SEED, number, scene, staff=True),
    ]
    for make in makers:
        first, second = ([make(number) for number in range(400)] for _ in range(2))
        assert first == second
        kinds.update(each.kind for each in first)
    assert len(kinds) == 20


def test_every_page_of_the_tables_has_addresses() -> None:
    made = book(fake_stock(1, "own"), fake_stock(2, "other"))
    assert not [each.path for each in (*made.own, *made.foreign, *made.staff) if "{" in each.path]
    assert all(each.path.startswith("/console/1/") for each in (*made.own, *made.crossed))
    unknown = structs.replace(made.own[0].page, path="/things/{thing}")
    with pytest.raises(KeyError, match="things/thing"):
        list(addresses(unknown, "", {}, "live"))


def test_a_failure_of_the_console_is_known_as_one(tmp_path: Path) -> None:
    raw = b"GET /console HTTP/1.1\r\nCookie: __Host-guichet-session=first\r\n\r\n"
    probe = PageProbe("console: queries", raw, "GET", "/console", allowed=(200, 303), person="owner", hides=False)
    wrong = Violated(7, probe, "status 500")
    save(tmp_path / "failure.json", SEED, ["status 500"], wrong, {"cookie_0": "first"}, [])

    assert saved_kind(tmp_path / "failure.json") == "console: queries"
    again = saved_page_probe(tmp_path / "failure.json", {"cookie_0": "second"})
    assert again == replace(probe, raw=raw.replace(b"first", b"second"))


def fake_stock(number: int, word: str) -> Stock:
    made = Stock(Merchant(number, word, "active", "XOF", 1), word)  # type: ignore[arg-type]
    ids: dict[str, Any] = {
        "payments/reference": ["p"], "payments/payment": ["1"], "deliveries/reference": ["d"], "links/link": ["1"],
        "cash-desk/link": ["2"], "exports/number": ["1"],
    }  # fmt: skip
    made.by_env.update(dict.fromkeys(ENVS, ids))
    staff: tuple[str, ...] = (
        "merchants/merchant",
        "wallets/merchant",
        "documents/document",
        "incidents/reference",
        "staff/user",
    )
    staff += ("users/user", "approvals/request", "reconciliation/day", "day/account", "statement/job")
    made.of_staff.update({**ids, **{name: ["1"] for name in staff}})
    made.fields.update({"key": ["7"], "session": ["8"]})
    return made


def fake_scene() -> Scene:
    own, foreign = fake_stock(1, "own"), fake_stock(2, "other")

    def person(name: str, *, is_staff: bool = False) -> Person:
        role: Any = name.removeprefix("staff ")
        return Person(name, role, is_staff, 1, 1, f"cookie {name}", f"token {name}")

    owner, admin = person("owner"), person("staff admin", is_staff=True)
    people = {each.name: each for each in (owner, admin, person("reader"))}
    stale = {"owner": owner, "staff admin": admin}
    cast = Cast(people, [owner], stale, replace(owner, cookie="ended"), replace(owner, cookie="half"), owner)
    pages = book(own, foreign)
    pages.forms.append(PageForm("/console/1/live/team", (("key", "1"), ("name", "")), (("act", ("a", "b")),)))
    pages.staff_forms.append(PageForm("/admin/modes", (("reason", ""),)))
    pages.staff_forms.append(PageForm("/admin/merchants/1/documents", is_file=True))
    names = {"own_invitation": "A" * 43}
    return Scene(own, foreign, cast, pages, SITE, names)
