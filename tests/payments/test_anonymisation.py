"""A customer is forgotten: nothing names them any more, the books are the same, and asking again changes nothing."""

import json
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from guichet.audit_log import entries
from guichet.back_office.anonymisation import Anonymised, CustomerKeys, anonymise_customer, without_customer
from guichet.db import tables as t
from guichet.domain.audit_log import Actor
from guichet.ledger import wallets
from guichet.ledger.audit import audit
from guichet.ledger.hash_chain import chain_head, extend_hash_chain
from guichet.webhooks.deliveries import PastAttempt, with_attempt
from tests.service_fixture import MerchantClient, ServiceFixture

NUMBER, EMAIL = "22997001234", "awa_kossou@example.com"
CUSTOMER = {
    "firstname": "Awa",
    "lastname": "Kossou",
    "email": "Awa_Kossou@example.com",
    "address": "Rue 12",
    "country": "BJ",
}
PERSONAL = (NUMBER, "Awa", "Kossou", "kossou@", "Rue 12", "chapeau")


async def _pay(merchant: MerchantClient, **more: Any) -> Any:
    told: dict[str, Any] = {
        "description": "Chapeau d’Awa",
        "metadata": {"article": "chapeau"},
        "return_url": "https://shop.example/Awa",
    }
    return await merchant.pay(customer=CUSTOMER, **told, **more)


async def _everything(service: ServiceFixture) -> str:
    """Every row of every table but the log of acts, as text."""
    rows = [await service.ctx.db.scan(select(table)) for table in t.metadata.sorted_tables]
    return json.dumps([[str(value) for value in row] for table in rows for row in table])


async def _forget(service: ServiceFixture, merchant: MerchantClient) -> Anonymised:
    keys = CustomerKeys(NUMBER, EMAIL)
    return await anonymise_customer(
        service.ctx.db, service.ctx.clock, merchant.id, keys, Actor("Ada", "root"), "Lettre du 3 mai"
    )


@pytest.mark.both_databases
async def test_nothing_names_the_customer_and_the_books_are_the_same(service: ServiceFixture) -> None:
    db = service.ctx.db
    merchant, other = await service.merchant(), await service.merchant()
    await merchant.put("/webhooks/endpoint", {"url": "https://shop.example/hook"})
    paid = await _pay(merchant)
    await service.run_worker(10)
    refunded = await merchant.post(f"/payments/{paid['reference']}/refund", {"reason": "Awa a changé d’avis"})
    assert refunded.status in (200, 201), refunded.raw
    await _pay(other)
    other_number = await _pay(merchant, ending="9876")
    for _ in range(12):
        await service.run_worker(3600)
    await db.write(
        insert(t.unmatched_callbacks).values(
            provider_account="op", path="/x", body=f'{{"msisdn":"{NUMBER}"}}', reason="unknown", received_at=1
        )
    )
    await merchant.report_mismatch(paid["reference"])
    await db.write(update(t.incidents).values(detail=f"The money went to {NUMBER}."))
    repeated = PastAttempt(service.clock.now(), 5, 500, "bad_status", f"unknown: {NUMBER}")
    await db.write(update(t.webhook_deliveries).values(history=with_attempt(None, repeated)))
    while await extend_hash_chain(db, service.clock.now()):
        pass
    head, balances = await chain_head(db), [wallet.balance for wallet in await wallets.wallets_of(db, merchant.id)]
    before = await _everything(service)
    assert all(text in before for text in (NUMBER, "Kossou", "Rue 12"))

    done = await _forget(service, merchant)
    assert done.waiting == []
    # The second payment has the same address, so it is the same customer's.
    assert (done.payments, done.refunds, done.incidents, done.unmatched_callbacks) == (2, 1, 1, 1)
    assert done.deliveries >= 2
    for table in (t.payments, t.refunds, t.events, t.webhook_deliveries, t.incidents, t.audit_log):
        rows = await db.scan(select(table).where(table.c.merchant_id == merchant.id))
        text = json.dumps([[str(value) for value in row] for row in rows], ensure_ascii=False)
        assert not [word for word in PERSONAL if word in text], (table.name, text)
    rows = await db.scan(select(t.payments.c.phone_number).where(t.payments.c.merchant_id == other.id))
    assert [number for (number,) in rows] == [NUMBER], "a customer of somebody else"

    shown = (await merchant.get(f"/payments/{paid['reference']}")).data
    assert (shown["amount"], shown["status"]) == (5000, "refunded")
    assert set(shown["customer"].values()) == {None}
    assert (await merchant.get(f"/payments/{other_number['reference']}")).status == 200
    assert await chain_head(db) == head
    assert [wallet.balance for wallet in await wallets.wallets_of(db, merchant.id)] == balances
    report = await audit(db, service.clock, lambda _: None)
    assert report.fault is None
    assert (await entries.verify(db)).fault is None
    act = next(entry for entry in await entries.latest(db) if entry.action == "customer.anonymised")
    assert (act.actor, act.reason) == ("Ada", "Lettre du 3 mai")

    number = (await entries.head(db))[0]
    assert await _forget(service, merchant) == Anonymised()
    assert (await entries.head(db))[0] == number, "nothing was done, so nothing was logged"


async def test_what_is_not_at_its_end_is_left_until_later(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    pending = await _pay(merchant)
    done = await _forget(service, merchant)
    assert (done.payments, done.waiting) == (0, [pending["reference"]])
    await service.run_worker(10)
    assert (await merchant.get(f"/payments/{pending['reference']}")).data["status"] == "succeeded"
    done = await _forget(service, merchant)
    assert (done.payments, done.waiting) == (1, [])


def test_a_webhook_keeps_what_is_nobodys() -> None:
    body = {
        "id": "1",
        "data": {
            "amount": 87.5,
            "description": "Chapeau d’Awa",
            "metadata": {"for": "Awa"},
            "payment_mode": {"name": "MTN MoMo", "operator": "mtn", "country": "Bénin"},
            "customer": {"firstname": "Awa", "phone_number": "229"},
        },
    }
    left = json.loads(without_customer(json.dumps(body)))
    assert left["data"]["payment_mode"] == body["data"]["payment_mode"]  # type: ignore[index]
    assert (left["id"], left["data"]["amount"]) == ("1", 87.5)
    assert "Awa" not in json.dumps(left)


def test_a_webhook_keeps_numbers_as_they_were_sent() -> None:
    number = "9" * 5_000
    body = f'{{"data": {{"other": {number}, "fraction": 0.10000000000000000000001, "metadata": {{"a": {number}}}}}}}'
    left = without_customer(body)
    assert left == f'{{"data":{{"other":{number},"fraction":0.10000000000000000000001,"metadata":null}}}}'
