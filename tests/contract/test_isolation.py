"""A merchant sees neither the objects of other merchants or of the other environment, nor whether they exist."""

from typing import Any

from tests.contract.shapes import check_error, order
from tests.fakes.scripted_provider import ScriptedProvider, done
from tests.service_fixture import Answer, MerchantClient, ServiceFixture

LINK = {"amount": 2500, "description": "Cotisation"}
LISTS = ("/payments", "/refunds", "/payment-links", "/webhooks/deliveries")


async def _furnished(account: MerchantClient) -> dict[str, str]:
    """An account with something of everything; the paths that read and change it."""
    await account.put("/webhooks/endpoint", {"url": "https://shop.example/h"})
    await account.post("/webhooks/test")
    payment = await account.pay("0000", external_id="mine/é")
    assert (await account.get(f"/payments/{payment['reference']}")).data["status"] == "succeeded"
    refund = (await account.post(f"/payments/{payment['reference']}/refund")).data
    paths = {
        "payment": f"/payments/{payment['reference']}",
        "by external_id": "/payments/mine%2F%C3%A9",
        "refund": f"/refunds/{refund['reference']}",
    }
    if account.env == "live":
        paths["link"] = f"/payment-links/{(await account.post('/payment-links', LINK)).data['id']}"
    return paths


def _unexisting(name: str) -> str:
    nowhere = "00000000-0000-4000-8000-000000000000"
    return {
        "payment": f"/payments/{nowhere}",
        "by external_id": "/payments/nobodys",
        "refund": f"/refunds/{nowhere}",
        "link": "/payment-links/999999999",
    }[name]


def _same(left: Answer, right: Answer) -> None:
    """Byte for byte, headers included (but for what differs between any two answers)."""
    check_error(left, "not_found")
    assert (left.status, left.raw) == (right.status, right.raw)
    varying = {"date", "x-request-id"}
    names = [{k.lower(): v for k, v in a.headers.items() if k.lower() not in varying} for a in (left, right)]
    assert names[0] == names[1]


async def test_objects_of_another_account_or_environment_are_not_found(
    live_service: ServiceFixture, operator: ScriptedProvider
) -> None:
    operator.script("status", done)
    owner, stranger = await live_service.merchant(), await live_service.merchant()
    for mine in (owner, owner.live):
        other_env = owner.live if mine.env == "test" else owner
        paths = await _furnished(mine)
        for name, path in paths.items():
            assert (await mine.get(path)).status == 200
            for outsider in (stranger, stranger.live):
                _same(await outsider.get(path), await outsider.get(_unexisting(name)))
            if mine is owner:
                _same(await other_env.get(path), await other_env.get(_unexisting(name)))
        for outsider in (stranger, stranger.live):
            for name in ("payment", "by external_id"):
                refund = await outsider.post(f"{paths[name]}/refund")
                _same(refund, await outsider.post(f"{_unexisting(name)}/refund"))
    for outsider in (stranger, stranger.live):
        for path in LISTS:
            assert (await outsider.get(path)).body["meta"]["total"] == 0
        assert (await outsider.get("/payments?external_id=mine%2F%C3%A9")).data == []
        assert (await outsider.get("/balance")).data["balance"] == 0
        assert (await outsider.get("/webhooks/endpoint")).data["url"] is None


async def test_each_environment_lists_its_own_only(live_service: ServiceFixture, operator: ScriptedProvider) -> None:
    operator.script("status", done)
    merchant = await live_service.merchant()
    await _furnished(merchant)
    await _furnished(merchant.live)
    for path, key in (("/payments", "reference"), ("/refunds", "reference"), ("/webhooks/deliveries", "id")):
        mine, theirs = [{each[key] for each in (await account.get(path)).data} for account in (merchant, merchant.live)]
        assert mine
        assert theirs
        assert not mine & theirs
    assert (await merchant.get("/payment-links")).data == []
    assert len((await merchant.live.get("/payment-links")).data) == 1
    test, live = [(await account.get("/payments")).data for account in (merchant, merchant.live)]
    assert [p["external_id"] for p in test] == [p["external_id"] for p in live] == ["mine/é"]
    assert test[0]["reference"] != live[0]["reference"]


async def test_an_external_id_belongs_to_one_account_and_one_environment(
    live_service: ServiceFixture, operator: ScriptedProvider
) -> None:
    one, two = await live_service.merchant(), await live_service.merchant()
    accounts = [one, two, one.live, two.live]
    made: list[Any] = [(await each.post("/payments", order(external_id="same"))).data for each in accounts]
    assert len({payment["reference"] for payment in made}) == 4
    for account, payment in zip(accounts, made, strict=True):
        assert (await account.get("/payments/same")).data["reference"] == payment["reference"]
        assert (await account.post("/payments", order(external_id="same"))).data["reference"] == payment["reference"]
        assert (await account.get("/payments")).body["meta"]["total"] == 1


async def test_a_test_key_cannot_touch_the_production_endpoint(shared_service: ServiceFixture) -> None:
    merchant, other = await shared_service.merchant(), await shared_service.merchant()
    live = (await merchant.live.put("/webhooks/endpoint", {"url": "https://shop.example/live"})).data
    await merchant.put("/webhooks/endpoint", {"url": "https://shop.example/test", "rotate_secret": True})
    await merchant.put("/webhooks/endpoint", {"url": None, "rotate_secret": True})
    await other.live.put("/webhooks/endpoint", {"url": None, "rotate_secret": True})
    kept = (await merchant.live.get("/webhooks/endpoint")).data
    assert (kept["url"], kept["secret"]) == (live["url"], live["secret"])
    assert (await merchant.get("/webhooks/endpoint")).data["url"] is None
