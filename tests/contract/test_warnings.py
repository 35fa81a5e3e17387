"""`warnings` beside `data`: each code of docs/contract.md, "Warnings", by its own request, and none without a cause."""

from importlib import resources
from ipaddress import ip_network
from typing import Any

import phonenumbers
import pytest
from msgspec import structs

from guichet.clock import SECOND, iso, later
from guichet.http_client import HttpClient
from tests.contract.shapes import check_resource, order
from tests.contract.tables import column, table
from tests.fakes.name_server import ScriptedResolver, name_server
from tests.fakes.scripted_provider import ScriptedProvider
from tests.service_fixture import Answer, ServiceFixture

LINK: dict[str, Any] = {"amount": 2500, "description": "Cotisation"}


def codes(answer: Answer) -> list[str]:
    """The codes of a success; each is one of the table, with a sentence."""
    assert answer.body["success"] is True, answer.raw
    found = answer.body.get("warnings", [])
    assert "warnings" not in answer.body or found, "an empty array is left out"
    for each in found:
        assert list(each) == ["code", "message"]
        assert each["message"]
        assert "{" not in each["message"]
    assert {each["code"] for each in found} <= set(column("warnings", "Code"))
    # Most tests leave an external_id out; `test_idempotency_keys.py` knows that code.
    return [each["code"] for each in found if each["code"] != "no_external_id"]


def message(answer: Answer) -> str:
    [warning] = [each for each in answer.body["warnings"] if each["code"] != "no_external_id"]
    text: str = warning["message"]
    return text


# --- POST /payments ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", table("operators"), ids=column("operators", "Code"))
async def test_an_ordinary_payment_has_no_warning(shared_service: ServiceFixture, row: Any) -> None:
    merchant = await shared_service.merchant()
    for _ in range(2):
        assert codes(await merchant.post("/payments", order(row["Code"], external_id="commande 1042/é"))) == []


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"amount": 6000}, "amount (5000 au lieu de 6000)"),
        ({"currency": "EUR"}, "currency (XOF au lieu de EUR)"),
        ({"operator": "moov"}, "operator (mtn au lieu de moov)"),
        ({"phone_number": "2290197009999"}, "phone_number (2290197001234 au lieu de 2290197009999)"),
    ],
)
async def test_a_replay_that_differs_says_in_what(
    shared_service: ServiceFixture, changed: dict[str, Any], told: str
) -> None:
    merchant = await shared_service.merchant()
    first = await merchant.post("/payments", order(external_id="a"))
    again = await merchant.post("/payments", order(external_id="a", **changed))
    assert (again.status, again.data) == (201, first.data)
    assert codes(again) == ["replay_differs"]
    assert message(again).endswith(f": {told}.")
    assert (await merchant.get("/payments")).body["meta"]["total"] == 1


async def test_a_replay_names_all_that_differs_and_nothing_else(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    await merchant.post("/payments", order(external_id="a"))
    card = order("VISA", external_id="a", amount=6000, description="autre", metadata={"x": 1})
    told = message(await merchant.post("/payments", card))
    assert "amount" in told
    assert "operator (mtn au lieu de VISA)" in told
    assert "phone_number (2290197001234 au lieu de aucun)" in told
    assert "currency" not in told
    same = order(external_id="a", phone_number="2290197001234", description="autre", metadata={"x": 1})
    assert codes(await merchant.post("/payments", same)) == [], "one telephone, written in two ways"


def test_the_numbers_of_countries_are_those_that_the_package_knows() -> None:
    """Once it knows new lengths, guichet/data/phone_numbers.txt is written anew."""
    known = []
    for country in sorted(phonenumbers.SUPPORTED_REGIONS):
        metadata = phonenumbers.PhoneMetadata.metadata_for_region(country, None)
        if metadata is not None and metadata.general_desc is not None:
            lengths = ",".join(map(str, metadata.general_desc.possible_length))
            known.append(f"{country} {metadata.country_code} {lengths}")
    assert (resources.files("guichet") / "data/phone_numbers.txt").read_text().splitlines() == known


@pytest.mark.parametrize(
    ("operator", "number", "warned"),
    [
        ("mtn", "0197001234", True),
        ("mtn", "2250197001234", True),
        ("mtn", "229019700123", True),
        ("mtn", "2290197001234", False),
        ("mtn", "+2290197001234", False),
        ("mtn", "22997001234", False),
        ("mtn_ci", "22501970012", True),
        ("orange_sn", "771230000", True),
        ("orange_sn", "221771230000", False),
        ("togocom_tg", "22890123456", False),
        ("mtn_cg", "242061234567", False),
    ],
)
async def test_a_number_of_another_country(
    sqlite_service: ServiceFixture, operator: str, number: str, warned: bool
) -> None:
    merchant = await sqlite_service.merchant()
    answer = await merchant.post("/payments", order(operator, phone_number=number))
    assert codes(answer) == (["phone_country_mismatch"] if warned else [])
    if warned:
        assert number in message(answer)
        assert answer.data["payment_mode"]["country"] in message(answer)


async def test_a_currency_that_live_refuses(live_service: ServiceFixture, operator: ScriptedProvider) -> None:
    operator.currencies = ("XOF",)
    merchant = await live_service.merchant()
    assert codes(await merchant.post("/payments", order(currency="EUR"))) == ["currency_not_accepted_live"]
    assert codes(await merchant.post("/payments", order())) == []
    live = await merchant.live.post("/payments", order(currency="EUR"))
    assert codes(live) == [], "in live the provider itself answers"


@pytest.mark.parametrize(
    ("external_id", "warned"),
    [
        (" a", True),
        ("a ", True),
        ("a  b", True),
        ("a\tb", True),
        ("a\u00a0b", True),
        ("a\u200bb", True),
        ("\ufeffa", True),
        ("a\n", True),
        (" ", True),
        ("a b", False),
        ("commande-1042", False),
        ("é b c", False),
    ],
)
async def test_spaces_that_nobody_types_again(shared_service: ServiceFixture, external_id: str, warned: bool) -> None:
    merchant = await shared_service.merchant()
    answer = await merchant.post("/payments", order(external_id=external_id))
    assert codes(answer) == (["external_id_spaces"] if warned else [])
    assert answer.data["external_id"] == external_id


async def test_warnings_come_together_and_stay_out_of_the_payment(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    answer = await merchant.post("/payments", order(external_id=" a", phone_number="0197001234"))
    assert codes(answer) == ["phone_country_mismatch", "external_id_spaces"]
    assert list(answer.body) == ["success", "data", "warnings"]
    check_resource("payment", answer.data)
    assert "warnings" not in (await merchant.get("/payments/%20a")).body


# --- POST /payment-links ----------------------------------------------------------------------------------------------


async def test_a_link_that_is_born_expired(service: ServiceFixture) -> None:
    merchant, now = (await service.merchant()).live, service.clock.now()
    for expires_at, warned in ((now, True), (later(now, -SECOND), True), (later(now, SECOND), False), (None, False)):
        body = LINK | ({} if expires_at is None else {"expires_at": iso(expires_at)})
        answer = await merchant.post("/payment-links", body)
        assert answer.status == 201
        assert codes(answer) == (["link_already_expired"] if warned else [])
        assert not warned or answer.data["expires_at"] in message(answer)


# --- PUT /webhooks/endpoint -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://10.0.0.1/h", ["webhook_address_not_public"]),
        ("https://169.254.169.254/latest", ["webhook_address_not_public"]),
        ("https://[fd00::1]/h", ["webhook_address_not_public"]),
        ("https://user:secret@shop.test/h", ["webhook_address_not_public"]),
        ("https://home.test/h", ["webhook_address_not_public"]),
        ("https://unknown.test/h", ["webhook_address_not_public"]),
        ("https://shop.test/h", []),
        ("https://both.test/h", []),
        ("http://127.0.0.1:9/h", []),
        (None, []),
    ],
)
async def test_an_address_that_no_webhook_reaches(
    sqlite_service: ServiceFixture, url: str | None, expected: list[str]
) -> None:
    names = ScriptedResolver(shop_test=[["127.0.0.2"]], home_test=[["10.1.2.3"]], both_test=[["10.1.2.3", "127.0.0.2"]])
    client = HttpClient(allow=[ip_network("127.0.0.2/32")], loopback=True, resolver=names)
    structs.force_setattr(sqlite_service.ctx, "http_client", client)
    merchant = await sqlite_service.merchant()
    answer = await merchant.put("/webhooks/endpoint", {"url": url})
    assert (answer.status, answer.data["url"]) == (200, url), "it is stored all the same"
    assert codes(answer) == expected
    assert "secret@" not in str(answer.body.get("warnings"))
    await client.aclose()


async def test_a_silent_name_server_does_not_keep_the_answer(sqlite_service: ServiceFixture) -> None:
    async with name_server() as (names, resolver):
        client = HttpClient(resolver=resolver)
        structs.force_setattr(sqlite_service.ctx, "http_client", client)
        merchant = await sqlite_service.merchant()
        answer = await merchant.put("/webhooks/endpoint", {"url": "https://merchant.silent.test/h"})
        assert codes(answer) == ["webhook_address_not_public"]
        assert "merchant.silent.test" in names.lookups
        await client.aclose()
