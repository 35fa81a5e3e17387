"""What people do in the console before its pages are recorded, and the forms that they send empty."""

from typing import Final

from tests.console.admin.conftest import upload
from tests.console.conftest import ConsoleBrowser
from tests.console.pages import Page
from tests.frozen_pages.normalised import read
from tests.frozen_pages.world import World

#: Pages whose forms are sent as they are shown: what is missing is said.
STAFF_FORMS: Final = (
    *("/admin/merchants", "/admin/payments", "/admin/modes", "/admin/staff", "/admin/merchants/new", "/admin/users"),
    *("/admin/merchants/1", "/admin/merchants/1/notes", "/admin/merchants/1/documents", "/admin/merchants/1/modes"),
    *("/admin/merchants/1/developers", "/admin/merchants/1/anonymise", "/admin/wallets/1", "/admin/ledger"),
    *("/admin/deliveries", "/admin/reconciliation/margin", "/admin/reconciliation/statement", "/admin/audit-log"),
    *("/admin/doctor/providers", "/admin/doctor/wave-merchants"),
)
OWNER_FORMS: Final = ("/team", "/links/new", "/cash-desk", "/exports", "/developers/clock", "/webhooks/deliveries")


async def act(browser: ConsoleBrowser, path: str, **fields: str) -> Page:
    """Posts to a page with the token of its forms, and the keys of a form that has one."""
    page = await browser.get(path)
    assert page.status == 200, (path, page.status)
    hidden: dict[str, str] = {}
    for form in page.forms():
        if "sign-out" not in form.action:
            hidden |= {name: form.fields[name] for name in ("csrf", "form", "after", "seen") if name in form.fields}
    return await browser.post(path, {**hidden, **fields})


async def of_staff(world: World, awa: ConsoleBrowser, zoe: ConsoleBrowser) -> list[str]:
    """Acts of many kinds; where the jobs are shown that the worker did for them."""
    merchant = "/admin/merchants/1"
    await act(awa, f"{merchant}/notes", text="Appelée le 3 mai")
    await upload(awa, f"{merchant}/documents", b"%PDF-1.7 x", "rccm.pdf")
    await act(awa, merchant, act="limits", rate_limit="90", payment_limit="500000", daily_limit="", reason="contrat")
    await act(awa, merchant, act="time_zone", time_zone="Africa/Abidjan")
    changes = {"operator": "moov", "state": "closed", "percent": "", "fixed": "", "reason": "panne"}
    await act(awa, f"{merchant}/modes", **changes, confirm="yes")
    await act(awa, "/admin/modes", **{**changes, "operator": "mtn_ci", "state": "", "percent": "2,5"}, confirm="yes")
    await act(awa, "/admin/staff", name="Ali", email="ali@guichet.example", role="auditor")
    await act(awa, "/admin/payments", q="live-9001")
    await act(awa, "/admin/users", q="owner@kora.example")
    incidents = await awa.get("/admin/incidents")
    cases = [link.partition("?")[0] for link in read(incidents.text)[1] if link.startswith("/admin/incidents/")]
    for number, case in enumerate(dict.fromkeys(cases)):
        await _decide(awa, case, number)
    approvals = await zoe.get("/admin/approvals")
    waiting = [link.partition("?")[0] for link in read(approvals.text)[1] if link.startswith("/admin/approvals/")]
    for number, request in enumerate(sorted(set(waiting))[:4]):
        await act(zoe, request, act=("approve", "refuse")[number % 2], reason="vu avec MTN")
    await world.turn(60)
    jobs = []
    for kind in ("provider_check", "provider_deep_check", "provider_balances"):
        jobs.append(await act(awa, "/admin/doctor/providers", kind=kind, account=""))
    await act(awa, "/admin/ledger")
    jobs.append(await act(awa, "/admin/reconciliation/margin", **{"from": "2026-11-01", "to": "2026-11-29"}))
    statement = b"reference;amount;status\nnobody;100;SUCCESSFUL\n"
    period = {"from": "2026-11-20", "to": "2026-11-21", "account": "mtn_benin", "source": "file"}
    jobs.append(await upload(awa, "/admin/reconciliation/statement", statement, "releve.csv", fields=period))
    await world.running.work()
    await act(awa, "/admin/wallets/1", currency="XAF", status="Gelé", reason="enquête", confirm="yes")
    return [page.path for page in jobs]


async def _decide(browser: ConsoleBrowser, case: str, number: int) -> None:
    """What the page of a case offers, one after the other."""
    page = await browser.get(case)
    said = {"reason": "relevé du 3 mai"}
    fields = [name for form in page.forms() for name in form.fields]
    if 'name="to"' in page.text:
        await act(browser, case, act="late", to=("payer", "wallet", "returned")[number % 3], **said)
    elif 'name="from"' in page.text:
        dispute = next(form.fields["dispute"] for form in page.forms() if "dispute" in form.fields)
        await act(browser, case, act="dispute", dispute=dispute, **{"from": "merchant"}, **said)
    elif 'name="outcome"' in page.text and number % 3:
        override = {"override": "yes"} if number % 2 else {}
        await act(browser, case, act="settle", outcome=("succeeded", "failed")[number % 2], **override, **said)
    elif "incident" in fields and number < 5:
        incident = next(form.fields["incident"] for form in page.forms() if "incident" in form.fields)
        await act(browser, case, act="close", incident=incident, **said)


async def of_owner(owner: ConsoleBrowser, base: str) -> None:
    await act(owner, f"{base}/test/links/new", amount="2500", description="Savon", type="permanent")
    await act(owner, f"{base}/test/cash-desk", amount="1500", description="Pain")
    await act(owner, f"{base}/test/developers", act="create", expires="")
    await act(owner, f"{base}/test/developers/clock", act="clock_advance", number="2", unit="h")
    await act(owner, f"{base}/live/team", act="invite", name="Sèna", email="sena@kora.example", role="reader")
    period = {"from": "2026-11-20", "to": "2026-11-29"}
    await act(owner, f"{base}/live/exports", kind="payments", format="csv", **period)
    await act(owner, f"{base}/live/exports", kind="movements", format="xlsx", currency="XOF", **period)


async def sent_empty(browser: ConsoleBrowser, path: str) -> list[tuple[str, Page]]:
    """The answer to each form of a page, sent as it is shown with each of its buttons."""
    page = await browser.get(path)
    answers = []
    for form in page.forms():
        if "sign-out" in form.action or "csrf" not in form.fields:
            continue
        fields = {name: value for name, value in form.fields.items() if name not in ("confirm", "override", "file")}
        for name in _acts(page, form.action, set(form.fields)):
            answer = await browser.ask("POST", form.action or path, {**fields, **({"act": name} if name else {})})
            answers.append((f"{path} {name} {' '.join(form.fields)}", answer))
    return answers


def _acts(page: Page, action: str, names: set[str]) -> list[str]:
    """The values of the buttons of the form that has these fields."""
    found, fields, inside = list[str](), set[str](), False
    for line in read(page.text)[0]:
        if line.startswith("[form "):
            inside, fields, found = True, set(), []
        elif inside and line.startswith("[input "):
            fields.add(line.split(" ", 1)[1].partition("=")[0])
        elif inside and line.startswith("[button "):
            found.append(line.split(" ")[1].partition("=")[2])
            if names <= fields:
                return [value for value in found if value not in ("disable", "revoke", "remove")]
    return found[:1]
