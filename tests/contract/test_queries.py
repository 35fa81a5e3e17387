"""Query parameters as docs/contract.md states them: filters, dates, pages (D12, D13)."""

from typing import Any
from urllib.parse import quote

import pytest

from guichet.clock import SECOND, iso, later
from tests.contract.shapes import check_resource, check_success, endpoint, refused_fields
from tests.contract.tables import Row, column, table, tables
from tests.service_fixture import ServiceFixture

LISTS = [row["Path"] for row in table("endpoints") if row["Paginated"] == "yes"]
DAY = 86_400


def _paging(path: str) -> dict[str, Row]:
    rows = {row["Field"]: row for row in tables("request")[f"GET {path}"]}
    return {name: rows[name] for name in ("per_page", "page")}


@pytest.mark.parametrize("path", LISTS)
async def test_per_page_and_page_are_bounded(shared_service: ServiceFixture, path: str) -> None:
    merchant = await shared_service.merchant()
    for name, row in _paging(path).items():
        lowest, highest = int(row["Min"]), int(row["Max"] or 10**12)
        for value in (lowest, highest):
            assert (await merchant.get(f"{path}?{name}={value}")).body["meta"] is not None
        above = [str(highest + 1)] if row["Max"] else []
        for text in (str(lowest - 1), "-1", "", "x", "1.5", "1e1", "%2B1", "%D9%A3", "9" * 40, *above):
            answer = await merchant.get(f"{path}?{name}={text}")
            assert refused_fields(answer) == {name}, (text, answer.raw)
        defaults = (await merchant.get(path)).body["meta"]
        assert defaults["per_page" if name == "per_page" else "current_page"] == int(row["Default"])
    assert refused_fields(await merchant.get(f"{path}?per_page=0&page=0")) == {"per_page", "page"}


async def test_counters_order_last_page_and_past_the_end(service: ServiceFixture) -> None:
    merchant = (await service.merchant()).live
    for number in range(7):
        await merchant.post("/payment-links", {"amount": 100 + number, "description": "Lien"})
        service.clock.advance(1)
    seen: list[int] = []
    for page, expected in ((1, 3), (2, 3), (3, 1), (4, 0), (10**12, 0)):
        answer = await merchant.get(f"/payment-links?per_page=3&page={page}")
        data = check_success(answer, endpoint("GET", "/payment-links"))
        assert len(data) == expected
        assert answer.body["meta"] == {"current_page": page, "per_page": 3, "total": 7, "last_page": 3}
        seen += [link["amount"] for link in data]
    assert seen == [106, 105, 104, 103, 102, 101, 100]
    whole = (await merchant.get("/payment-links?per_page=7")).body["meta"]
    assert whole == {"current_page": 1, "per_page": 7, "total": 7, "last_page": 1}


async def test_payments_of_one_instant_still_come_newest_first(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    created = [(await merchant.pay())["identifier"] for _ in range(5)]
    listed = [payment["identifier"] for payment in (await merchant.get("/payments")).data]
    assert listed == created[::-1]
    paged = [(await merchant.get(f"/payments?per_page=1&page={n}")).data[0]["identifier"] for n in range(1, 6)]
    assert paged == listed


async def test_refunds_and_deliveries_come_newest_first(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    await merchant.put("/webhooks/endpoint", {"url": "https://shop.example/h"})
    refunds = []
    for number in range(3):
        await merchant.pay("0000", external_id=f"r{number}")
        await merchant.get(f"/payments/r{number}")
        refunds.append((await merchant.post(f"/payments/r{number}/refund")).data["reference"])
        service.clock.advance(1)
    assert [refund["reference"] for refund in (await merchant.get("/refunds")).data] == refunds[::-1]
    answer = await merchant.get("/webhooks/deliveries?per_page=2&page=5")
    assert answer.body["meta"] == {"current_page": 5, "per_page": 2, "total": 9, "last_page": 5}
    assert [each["event"] for each in answer.data] == ["payment.succeeded"]
    newest = (await merchant.get("/webhooks/deliveries?per_page=3")).data
    assert [each["event"] for each in newest] == ["payment.refunded", "refund.succeeded", "payment.succeeded"]


async def test_filters_of_payments_combine(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    born = service.clock.now()
    for day, ending in enumerate(("0000", "0000", "0002", "0003")):
        await merchant.pay(ending, external_id=f"order {day}/é")
        await service.run_worker(DAY if day < 3 else 0)

    async def found(query: str) -> list[str]:
        answer = await merchant.get(f"/payments?{query}")
        assert answer.body["meta"]["total"] == len(answer.data)
        return [check_resource("payment", payment)["external_id"][6] for payment in answer.data]

    third = quote(iso(later(born, 2 * DAY * SECOND)))
    assert await found("") == ["3", "2", "1", "0"]
    assert await found("status=succeeded") == ["1", "0"]
    assert await found("status=failed") == ["3"]
    assert await found("status=refunded") == []
    assert await found(f"external_id={quote('order 2/é')}") == ["2"]
    assert await found("external_id=order+2%2F%C3%A9&status=succeeded") == []
    assert await found("external_id=ORDER+2%2F%C3%A9") == []
    assert await found("external_id=nothing%00") == []
    assert await found(f"from={third}") == ["3", "2"]
    assert await found(f"to={third}") == ["2", "1", "0"]
    assert await found(f"from={third}&to={third}&status=pending") == ["2"]
    assert await found(f"from={third}&to={third}&status=succeeded") == []


async def test_an_unknown_status_is_read_as_pending(sqlite_service: ServiceFixture) -> None:
    merchant = await sqlite_service.merchant()
    await merchant.pay("0002")
    await merchant.pay("0000")
    await sqlite_service.run_worker()
    for status in ("unknown", "", "PENDING", "succeeded%20"):
        assert [p["status"] for p in (await merchant.get(f"/payments?status={status}")).data] == ["pending"]


@pytest.mark.parametrize("name", ["from", "to"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "hier",
        "2026-13-01",
        "2026-02-30",
        "20261120",
        "1700000000",
        "2026-11-20T25:00",
        "2026-11-20T10:15:30%2B25:00",
        "0000-01-01",
        "2026-11-20T10",
        "%00",
    ],
)
async def test_an_unreadable_date_is_refused(shared_service: ServiceFixture, name: str, text: str) -> None:
    merchant = await shared_service.merchant()
    assert refused_fields(await merchant.get(f"/payments?{name}={text}")) == {name}


async def test_every_error_of_a_query_is_reported_at_once(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    answer = await merchant.get("/payments?from=x&to=y&per_page=0&page=0&status=unknown")
    assert refused_fields(answer) == {"from", "to", "per_page", "page"}


# --- catalogue and balance --------------------------------------------------------------------------------------------


async def test_the_filters_of_the_catalogue_combine(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    rows = table("operators")

    async def found(query: str) -> list[str]:
        answer = await merchant.get(f"/payment-modes?{query}")
        return [mode["operator"] for mode in check_success(answer, endpoint("GET", "/payment-modes"))]

    for code in dict.fromkeys(row["ISO-2"] for row in rows if row["ISO-2"]):
        of_country = [row["Code"] for row in rows if row["ISO-2"] == code]
        assert await found(f"country={code}") == of_country
        assert await found(f"country={code.lower()}&type=mobile_money") == of_country
        assert await found(f"country={code}&type=card") == []
    for row in table("mode-types"):
        if row["Filter"] == "yes":
            assert await found(f"type={row['Type']}") == [r["Code"] for r in rows if r["Type"] == row["Type"]]
        else:
            assert refused_fields(await merchant.get(f"/payment-modes?type={row['Type']}")) == {"type"}
    assert await found("country=FR") == []
    for unknown in ("", "CARD", "cash", "card%00"):
        assert refused_fields(await merchant.get(f"/payment-modes?type={unknown}")) == {"type"}


async def test_the_catalogue_row_by_row(shared_service: ServiceFixture) -> None:
    modes: list[Any] = (await (await shared_service.merchant()).get("/payment-modes")).data
    for mode, row in zip(modes, table("operators"), strict=True):
        check_resource("payment-mode", mode)
        assert (mode["operator"], mode["type"]) == (row["Code"], row["Type"])
        assert (mode["country"], mode["country_code"]) == (row["Country"] or None, row["ISO-2"] or None)
        assert mode["requires_otp"] is (row["OTP"] == "yes")
    assert len({mode["id"] for mode in modes}) == len(modes)


async def test_the_balance_of_each_currency_in_any_case(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    assert (await merchant.get("/balance")).data["currency"] == "XOF"
    for currency in column("currencies", "Currency"):
        for spelling in (currency, currency.lower(), currency.title()):
            for account in (merchant, merchant.live):
                data = check_resource("balance", (await account.get(f"/balance?currency={spelling}")).data)
                assert (data["currency"], data["balance"], data["balance_minor"]) == (currency, 0, 0)
    for unknown in ("", "GBP", "XOF%20", "%00"):
        assert refused_fields(await merchant.get(f"/balance?currency={unknown}")) == {"currency"}


@pytest.mark.parametrize("path", LISTS)
async def test_a_page_past_the_end_of_an_empty_list_is_empty(shared_service: ServiceFixture, path: str) -> None:
    merchant = await shared_service.merchant()
    answer = await merchant.get(f"{path}?page=9&per_page=100")
    assert answer.data == []
    assert answer.body["meta"] == {"current_page": 9, "per_page": 100, "total": 0, "last_page": 1}
