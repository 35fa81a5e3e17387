"""Aggregated merchants of Wave are made from the back office: once, found again, refused, and by whom."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from guichet.clock import SECOND
from guichet.domain.accounts import STEP_UP_LASTS
from guichet.domain.roles import STAFF_ROLES, may_as_staff
from guichet.domain.staff_jobs import RIGHT_OF
from guichet.incidents import repository as incidents
from guichet.merchants import provider_merchants
from guichet.providers.shared.client import ProviderAccount
from guichet.settings import Settings
from tests.console.admin.conftest import Staff
from tests.console.admin.operations import act
from tests.console.conftest import ConsoleBrowser, ConsoleFixture
from tests.console.page_rules import faults_of
from tests.console.pages import Page
from tests.providers.simulated_providers import Setup, SimulatedProviders, open_simulated_providers

PATH = "/admin/doctor/wave-merchants"
_SETTINGS = {"api_key": "wave_sn_prod_1", "country": "sn"}
WAVE = ProviderAccount("wave_senegal", "wave", "{sim}/wave", {**_SETTINGS, "aggregated_merchants": "yes"})
PLAIN = ProviderAccount("plain", "wave", "{sim}/wave", _SETTINGS)
SETUP = Setup({"wave_senegal": WAVE, "plain": PLAIN}, {"wave_sn": ["wave_senegal"]})


@pytest.fixture
async def simulated(settings: Settings) -> AsyncIterator[SimulatedProviders]:
    async with open_simulated_providers(settings, SETUP) as opened:
        yield opened


async def _asked(simulated: SimulatedProviders, admin: ConsoleBrowser, **fields: str) -> Page:
    """The page of the job after the worker did it."""
    asked = await act(admin, PATH, confirm="yes", **fields)
    assert 'data-refresh="3"' in asked.text, asked.text
    await simulated.nudged(simulated.service.worker.run_until_idle())
    page = await admin.get(asked.path)
    assert faults_of(page, "") == []
    return page


async def test_merchants_without_an_id_are_made_once_and_their_incident_closes(simulated: SimulatedProviders) -> None:
    service = simulated.service
    db, merchant = service.ctx.db, simulated.merchant
    order = {"amount": 5000, "operator": "wave_sn", "phone_number": "221771239001"}
    assert (await merchant.live.post("/payments", order)).status == 500
    assert [each.kind for each in await incidents.still_open(db)] == ["missing_aggregated_merchant"]
    console = ConsoleFixture(service)
    admin = await console.joined("admin@guichet.example", None, "admin")
    page = await _asked(simulated, admin)
    assert "<dt>Créés chez Wave</dt><dd>1</dd>" in page.text
    named = await provider_merchants.ids_of(db, "wave_senegal")
    assert next(iter(named.values())) in page.text
    assert await incidents.still_open(db) == []
    page = await _asked(simulated, admin, account="wave_senegal")
    for words in ("<dt>Créés chez Wave</dt><dd>0</dd>", "<dt>Déjà chez Wave, identifiant repris</dt><dd>0</dd>"):
        assert words in page.text
    assert await provider_merchants.ids_of(db, "wave_senegal") == named
    asked = await Staff(console).last_act("staff_job.requested")
    assert (asked.actor, asked.after) == (
        "admin@guichet.example",
        '{"account":"wave_senegal","kind":"wave_merchants"}',
    )
    assert PATH in (await admin.get("/admin/doctor/providers")).text


async def test_a_wave_that_does_not_answer_is_said(sqlite_settings: Settings) -> None:
    dead = structs.replace(WAVE, base_url="http://127.0.0.1:9/wave")
    async with open_simulated_providers(sqlite_settings, replace(SETUP, accounts={"wave_senegal": dead})) as simulated:
        admin = await ConsoleFixture(simulated.service).joined("admin@guichet.example", None, "admin")
        page = await _asked(simulated, admin)
        assert "Wave n’a pas donné la liste des marchands de wave_senegal" in page.text


async def test_wrong_forms_do_nothing(sqlite_settings: Settings) -> None:
    async with open_simulated_providers(sqlite_settings, SETUP) as simulated:
        admin = await ConsoleFixture(simulated.service).joined("admin@guichet.example", None, "admin")
        for wrong, sentence in (
            ({"account": "plain", "confirm": "yes"}, "Choisissez un compte"),
            ({"account": "nobody", "confirm": "yes"}, "Choisissez un compte"),
            ({"account": "wave_senegal"}, "Cochez la confirmation"),
        ):
            page = await act(admin, PATH, **wrong)
            assert (page.status, sentence in page.text, faults_of(page, "")) == (422, True, []), wrong
        simulated.clock.advance(STEP_UP_LASTS / SECOND + 1)
        assert (await act(admin, PATH, confirm="yes")).path.startswith("/console/factor?next=")


async def test_without_an_aggregators_account_there_is_nothing_to_do(sqlite_staff: Staff) -> None:
    admin = await sqlite_staff.browser("admin")
    page = await admin.get(PATH)
    assert (page.status, "il n’y a rien à faire" in page.text) == (200, True)
    assert PATH not in (await admin.get("/admin/doctor/providers")).text
    csrf = (await admin.get("/console/security")).forms()[0].fields["csrf"]
    assert (await admin.post(PATH, {"csrf": csrf, "confirm": "yes"})).status == 422


@pytest.mark.parametrize("role", STAFF_ROLES)
async def test_who_may_ask_is_what_the_table_says(sqlite_settings: Settings, role: Any) -> None:
    async with open_simulated_providers(sqlite_settings, SETUP) as simulated:
        browser = await ConsoleFixture(simulated.service).joined(f"{role}@guichet.example", None, role)
        may = may_as_staff(role, RIGHT_OF["wave_merchants"])
        assert (await browser.get(PATH)).status == (200 if may else 403)
        csrf = (await browser.get("/console/security")).forms()[0].fields["csrf"]
        answer = await browser.ask("POST", PATH, {"csrf": csrf, "confirm": "yes"})
        assert answer.status == (303 if may else 403)
        assert (PATH in (await browser.get("/admin/doctor/providers")).text) is may
