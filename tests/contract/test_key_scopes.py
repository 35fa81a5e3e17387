"""Keys with scopes, and keys that are accepted from some addresses only (docs/contract.md, "Scopes")."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from starlette.routing import Route

from guichet.api.app import ROOT, api_routes
from guichet.api.scopes import SCOPES
from guichet.db.errors import ConstraintViolated
from guichet.domain.key_access import (
    KEY_SCOPES,
    KeyAccess,
    KeyScope,
    read_network,
    scope_bits,
    scopes_of,
    stored_networks,
)
from guichet.domain.merchants import Environment
from guichet.merchants import api_keys
from guichet.settings import Settings, load
from tests.contract.shapes import check_error, order
from tests.contract.tables import table
from tests.service_fixture import MerchantClient, ServiceFixture, open_service

ROWS = {(row["Method"], row["Path"]): row["Scopes"] for row in table("scopes")}
_BODIES: dict[str, Any] = {"/payment-modes/fees": {"amount": 5000, "operator": "mtn"}}


async def key_with(
    service: ServiceFixture, merchant: MerchantClient, env: Environment = "test", **access: Any
) -> MerchantClient:
    key, now = api_keys.new_key(env), service.clock.now()
    async with service.ctx.db.transaction() as tx:
        await api_keys.add(tx, merchant.id, env, key, None, now, KeyAccess(**access))
    return MerchantClient(service, merchant.id, {env: key}, env)


def _named(scopes: str) -> set[str]:
    return set(KEY_SCOPES) if scopes == "any" else set(scopes.split(" or "))


def test_the_contract_and_the_code_say_the_same_of_every_route(sqlite_service: ServiceFixture) -> None:
    """Whoever adds a route decides which scopes open it."""
    served = {
        (method, route.path.removeprefix(ROOT))
        for route in api_routes(sqlite_service.ctx)
        if isinstance(route, Route)
        for method in route.methods or ()
    }
    assert served == set(SCOPES) == set(ROWS) == {(row["Method"], row["Path"]) for row in table("endpoints")}
    for route, scopes in SCOPES.items():
        assert set(scopes) == _named(ROWS[route]), route


def test_the_openapi_document_says_each_scope(document: dict[str, Any]) -> None:
    for (method, path), scopes in ROWS.items():
        said = document["paths"][path][method.lower()]["description"].rpartition("\n\nPortée : ")[2]
        shown = "toute clé." if scopes == "any" else f"{' ou '.join(f'`{scope}`' for scope in scopes.split(' or '))}."
        assert said == shown


async def test_each_scope_opens_its_routes_and_no_other(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    await merchant.post("/payments", order(external_id="a"))
    for scope in KEY_SCOPES:
        key = await key_with(service, merchant, scopes=scope_bits([scope]))
        for (method, path), scopes in ROWS.items():
            at = path.replace("{reference}", "a").replace("{id}", "1")
            answer = await key.call(method, at, _BODIES.get(path, {} if method in ("POST", "PUT") else None))
            if scope in _named(scopes):
                assert answer.status in (200, 404, 409, 422), (scope, method, path)
            else:
                error = check_error(answer, "insufficient_scope")
                assert all(f"« {name} »" in error["message"] for name in _named(scopes)), error


async def test_a_refused_request_does_nothing(service: ServiceFixture) -> None:
    """The scope is judged before the body is read."""
    merchant = await service.merchant()
    reader = await key_with(service, merchant, scopes=scope_bits(["payments:read"]))
    for body in (order(external_id="a"), b"{"):
        check_error(await reader.post("/payments", body), "insufficient_scope")
    assert (await merchant.get("/payments")).data == []
    check_error(await reader.call("DELETE", "/payments"), "method_not_allowed")
    check_error(await reader.put("/webhooks/endpoint", {"url": None}), "insufficient_scope")


@pytest.mark.parametrize(
    "scopes", [("payments:write",), ("payments:read", "refunds"), ("links", "webhooks"), KEY_SCOPES]
)
def test_scopes_are_kept_as_bits(scopes: Iterable[KeyScope]) -> None:
    assert scopes_of(scope_bits(scopes)) == [scope for scope in KEY_SCOPES if scope in scopes]


async def test_old_keys_are_full(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    for key in await api_keys.list_of(service.ctx.db, merchant.id):
        assert (scopes_of(key.scopes), key.networks) == (None, None)
    with pytest.raises(ConstraintViolated):
        await key_with(service, merchant, scopes=0)
    with pytest.raises(ConstraintViolated):
        await key_with(service, merchant, networks="203.0.113.7")


# --- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("203.0.113.7/32", "203.0.113.7"),
        ("203.0.113.0/24", "203.0.113.0/24"),
        ("2001:DB8:0::/48", "2001:db8::/48"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.0/120", "203.0.113.0/24"),
    ],
)
def test_networks_are_stored_in_their_shortest_form(typed: str, stored: str) -> None:
    assert read_network(typed) == stored


@pytest.mark.parametrize("typed", ["", "x", "203.0.113.7/24", "203.0.113", "fe80::1%eth0", "1", "203.0.113.07", "::/x"])
def test_what_is_no_network_is_refused(typed: str) -> None:
    with pytest.raises(ValueError):
        read_network(typed)


async def test_a_key_is_accepted_from_its_addresses_only(settings: Settings) -> None:
    proxies = load({"GUICHET_TRUSTED_PROXIES": "127.0.0.0/8, 10.0.0.0/8"}).trusted_proxies
    async with open_service(replace(settings, trusted_proxies=proxies)) as service:
        merchant = await service.merchant()
        networks = stored_networks(["203.0.113.7", "198.51.100.0/24", "2001:db8::/48"])
        key = await key_with(service, merchant, "live", networks=networks)

        async def status(*hops: str) -> int:
            answer = await key.get("/balance", headers={"X-Forwarded-For": ", ".join(hops)} if hops else {})
            if answer.status != 200:
                check_error(answer, "address_not_allowed")
            return answer.status

        accepted: list[tuple[str, ...]] = [
            ("203.0.113.7",),
            ("198.51.100.99",),
            ("2001:db8:0:77::1",),
            ("::ffff:203.0.113.7",),
            ("203.0.113.7", "10.1.2.3"),
            ("192.0.2.1", "203.0.113.7", "10.1.2.3"),
        ]
        for hops in accepted:
            assert await status(*hops) == 200, hops
        refused: list[tuple[str, ...]] = [
            (),
            ("203.0.113.8",),
            ("2001:db9::1",),
            ("203.0.113.7", "203.0.113.8"),
            ("203.0.113.7", "unknown"),
            ("nonsense",),
        ]
        for hops in refused:
            assert await status(*hops) == 403, hops
        live = await merchant.live.get("/balance", headers={"X-Forwarded-For": "203.0.113.8"})
        assert live.status == 200, "other keys are accepted from everywhere"


async def test_without_a_trusted_proxy_nobody_says_where_they_are(sqlite_service: ServiceFixture) -> None:
    merchant = await sqlite_service.merchant()
    here = await key_with(sqlite_service, merchant, "live", networks="127.0.0.0/8")
    away = await key_with(sqlite_service, merchant, "live", networks="203.0.113.7")
    assert (await here.get("/balance")).status == 200
    for forged in ({}, {"X-Forwarded-For": "203.0.113.7"}, {"X-Real-IP": "203.0.113.7"}):
        check_error(await away.post("/payments", order(), headers=forged), "address_not_allowed")


async def test_the_address_is_judged_before_the_scope(sqlite_service: ServiceFixture) -> None:
    merchant = await sqlite_service.merchant()
    key = await key_with(sqlite_service, merchant, "live", scopes=scope_bits(["links"]), networks="203.0.113.7")
    check_error(await key.get("/payments"), "address_not_allowed")
    pending = await sqlite_service.merchant(status="pending")
    key = await key_with(sqlite_service, pending, "live", networks="203.0.113.7")
    check_error(await key.get("/payments"), "merchant_inactive")
