"""Open incidents, one case with everything needed to decide, and the acts that follow from it."""

from tests.console.admin.operations import Operations, act
from tests.payments.conftest import stored
from tests.payments.test_empty_float import open_kinds
from tests.payments.test_late_results import found_late
from tests.payments.test_manual_settlement import stuck


async def test_incidents_are_listed_by_kind_and_closed_with_a_reason(operations: Operations) -> None:
    live = operations.live
    payment = await stuck(live)
    await live.merchant.report_mismatch(payment.reference)
    awa, auditor = await operations.staff(), await operations.staff("ada@example.com", "auditor")
    page = await awa.get("/admin/incidents")
    assert page.text.count(f'href="/admin/incidents/{payment.reference}"') == 2
    page = await awa.get("/admin/incidents?kind=mismatch")
    assert page.text.count(f'href="/admin/incidents/{payment.reference}"') == 1
    case = f"/admin/incidents/{payment.reference}"
    page = await awa.get(case)
    assert payment.phone_number is not None
    assert f"<dd>+{payment.phone_number}</dd>" in page.text
    assert "En attente depuis plus de 72 heures" in page.text
    incident = next(form.fields["incident"] for form in page.forms() if "incident" in form.fields)
    page = await act(awa, case, act="close", incident=incident, reason="")
    assert (page.status, "Dites pourquoi" in page.text) == (422, True)
    assert len(await open_kinds(live)) == 2
    await act(awa, case, act="close", incident=incident, reason="vu avec MTN")
    assert len(await open_kinds(live)) == 1
    listed = await operations.acts("incidents.listed")
    assert [each[2] for each in listed] == ["all", "mismatch"]
    assert [each[3]["incidents"] for each in listed] == [2, 1]
    ((_, actor, subject, _),) = await operations.acts("incident.closed")
    assert (actor, subject) == ("awa@example.com", incident)

    seen = await auditor.get(case)
    assert (seen.status, 'name="reason"' in seen.text) == (200, False)
    token = seen.form("csrf").fields["csrf"]
    refused = await auditor.post(case, {"csrf": token, "act": "close", "incident": "1", "reason": "x"})
    assert refused.status == 403
    assert (await awa.post(case, {"act": "close", "incident": "1", "reason": "x"})).status == 403, "no token"
    assert len(await open_kinds(live)) == 1
    assert (await auditor.get("/admin/incidents/01a202b1-10b7-453a-868b-cad7dfa87efe")).status == 404


async def test_an_incident_is_closed_on_the_page_of_its_own_case_only(sqlite_operations: Operations) -> None:
    operations = sqlite_operations
    live = operations.live
    payment = await stuck(live)
    other = await stored(live, await live.merchant.pay("5678"))
    await live.merchant.report_mismatch(other.reference)
    awa = await operations.staff()
    page = await awa.get(f"/admin/incidents/{other.reference}")
    incident = next(form.fields["incident"] for form in page.forms() if "incident" in form.fields)
    for number in (incident, "0", "x", str(2**63)):
        page = await act(awa, f"/admin/incidents/{payment.reference}", act="close", incident=number, reason="vu")
        assert page.status == 200
    assert (len(await open_kinds(live)), await operations.acts("incident.closed")) == (2, [])
    await act(awa, f"/admin/incidents/{other.reference}", act="close", incident=incident, reason="vu")
    assert len(await open_kinds(live)) == 1


async def test_a_choice_that_is_missing_keeps_what_was_typed(sqlite_operations: Operations) -> None:
    operations = sqlite_operations
    payment = await stuck(operations.live)
    awa = await operations.staff()
    case = f"/admin/incidents/{payment.reference}"
    for fields in ({"act": "settle"}, {"act": "late", "to": "wallet"}, {"act": "dispute", "from": "bank"}, {}):
        page = await act(awa, case, reason="relevé du 3 mai", **fields)
        assert (page.status, "Il manque un choix" in page.text) == (422, True), fields
        assert 'value="relevé du 3 mai"' in page.text
    assert await operations.status() is None


async def test_late_money_shows_what_may_be_decided(sqlite_operations: Operations) -> None:
    operations = sqlite_operations
    payment, _ = await found_late(operations.live)
    awa = await operations.staff()
    assert payment.reference in (await awa.get("/admin/incidents")).text
    page = await awa.get(f"/admin/incidents/{payment.reference}")
    for choice in ("wallet", "payer", "returned"):
        assert f'name="to" value="{choice}"' in page.text
    assert 'value="not-returned"' not in page.text
    assert 'name="outcome"' not in page.text, "it is final: nothing is to be settled"
