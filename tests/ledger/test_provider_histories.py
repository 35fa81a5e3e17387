"""The histories of Wave, pawaPay and Stripe: complete, or Unknown. What is listed becomes lines."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from guichet.clock import DAY, HOUR, Instant, from_datetime, later
from guichet.domain.money import Hundredths
from guichet.domain.reconciliation import Line
from guichet.providers.base import Unknown
from guichet.providers.pawapay.history import PawaPayStatements
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.stripe.history import read_history as stripe_history
from guichet.providers.wave.history import read_history as wave_history
from tests.fakes.clock import ManualClock

START = from_datetime(datetime(2022, 12, 18, tzinfo=UTC))
NOTIFY = "https://pay.example.com/providers/pawa/callback"


def said(body: object, status: int = 200) -> ProviderResponse:
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return ProviderResponse(status, raw, complete=True)


def item(number: int, **more: Any) -> dict[str, Any]:
    """As an answer of the real API that was recorded in production, where the customer paid 3 400."""
    known = {"timestamp": "2022-12-18T01:17:09Z", "amount": "3366", "fee": "34", "currency": "XOF"}
    known |= {"client_reference": f"ours-{number}", "checkout_api_session_id": f"cos-{number}"}
    return {**known, "transaction_id": f"T_{number}", **more}


class FakeWave:
    """Two transactions on each page, by day; `changed` replaces whole pages, by day and cursor."""

    def __init__(self, items: Mapping[str, list[dict[str, Any]]], changed: Mapping[Any, object] | None = None) -> None:
        self.items = items
        self.changed = changed or {}
        self.asked: list[tuple[str, str | None]] = []

    async def ask(self, query: dict[str, str]) -> ProviderResponse:
        day, cursor = query["date"], query.get("after")
        self.asked.append((day, cursor))
        if (day, cursor) in self.changed:
            return said(self.changed[day, cursor])
        rest = self.items.get(day, [])[int(cursor or 0) :]
        info = {"has_next_page": len(rest) > 2, "end_cursor": str(int(cursor or 0) + 2)}
        return said({"page_info": info, "date": day, "items": rest[:2]})


async def test_every_page_of_every_day_is_read() -> None:
    wave = FakeWave({"2022-12-18": [item(number) for number in range(5)], "2022-12-20": [item(9)]})
    lines = await wave_history(wave.ask, later(START, HOUR), later(START, 2 * DAY))
    assert isinstance(lines, list)
    assert [line.references[0] for line in lines] == [f"ours-{number}" for number in (0, 1, 2, 3, 4, 9)]
    assert {day for day, _ in wave.asked} == {"2022-12-18", "2022-12-19", "2022-12-20"}


async def test_the_fee_is_part_of_what_the_customer_paid() -> None:
    refund = item(2, amount="-3400", fee="0", timestamp="2022-12-18T02:00:00Z")
    lines = await wave_history(FakeWave({"2022-12-18": [item(1), refund]}).ask, START, START)
    at = from_datetime(datetime(2022, 12, 18, 1, 17, 9, tzinfo=UTC))
    paid, returned = Hundredths(3400_00), Hundredths(3400_00)
    assert lines == [
        Line(1, "payment", ("ours-1", "cos-1", "T_1"), paid, "XOF", "succeeded", at, Hundredths(34_00)),
        Line(
            2, "refund", ("ours-2", "cos-2", "T_2"), returned, "XOF", "succeeded", later(START, 2 * HOUR), Hundredths(0)
        ),
    ]


NO_PAGE = {"has_next_page": False, "end_cursor": None}


@pytest.mark.parametrize(
    "second",
    [
        {},
        {"page_info": NO_PAGE, "items": None},
        {"page_info": {}, "items": []},
        {"page_info": {"has_next_page": True}, "items": []},
        {"page_info": {"has_next_page": True, "end_cursor": "2"}, "items": []},
        {"page_info": NO_PAGE, "items": [{"amount": "1"}]},
        b"<html>",
    ],
)
async def test_a_history_with_an_unreadable_page_is_unknown(second: object) -> None:
    whole = {"2022-12-18": [item(number) for number in range(3)]}
    found = await wave_history(FakeWave(whole, {("2022-12-18", "2"): second}).ask, START, START)
    assert isinstance(found, Unknown)


CSV = """Creation Date,MSISDN,Transaction ID,Amount,Currency,Country,MNO,Type
2022-12-18 01:00:00,22997000001,dep-1,3400.00,XOF,BEN,MTN_MOMO_BEN,DEPOSIT
2022-12-18 01:00:00,22997000001,dep-1,-68.00,XOF,BEN,MTN_MOMO_BEN,Deposit Fee
2022-12-18 02:00:00,22997000001,ref-1,-3400,XOF,BEN,MTN_MOMO_BEN,REFUND
2022-12-18 03:00:00,,top-1,100000,XOF,BEN,,TOP_UP
"""


class FakePawaPay:
    """Statements that are ready at the third question; `changed` replaces answers by path."""

    def __init__(self, file: bytes = CSV.encode(), changed: Mapping[str, ProviderResponse] | None = None) -> None:
        self.file = file
        self.changed = changed or {}
        self.asked: list[dict[str, Any]] = []
        self.questions = 0

    async def get(self, path: str) -> ProviderResponse:
        if path in self.changed:
            return self.changed[path]
        if path == "/v2/wallet-balances":
            wallets = [
                {"country": country, "currency": "XOF", "balance": "1", "provider": ""} for country in ("BEN", "ZMB")
            ]
            return said({"balances": wallets})
        self.questions += 1
        state = "COMPLETED" if self.questions % 3 == 0 else "PROCESSING"
        return said({"status": "FOUND", "data": {"status": state, "downloadUrl": "https://files.example/1.csv"}})

    async def post(self, resource: str, body: dict[str, object]) -> ProviderResponse:
        self.asked.append({"resource": resource, **body})
        return self.changed.get(resource) or said({"statementId": "s-1", "status": "ACCEPTED"})

    async def download(self, url: str) -> ProviderResponse:
        assert url == "https://files.example/1.csv"
        return self.changed.get(url) or said(self.file)

    async def lines(self, until: Instant = later(START, DAY)) -> list[Line] | Unknown:
        statements = PawaPayStatements(self.get, self.post, self.download, frozenset({"BEN"}), ManualClock(START))
        return await statements.lines(START, until, NOTIFY)


async def test_a_statement_is_asked_for_waited_for_and_read() -> None:
    pawapay = FakePawaPay()
    lines = await pawapay.lines()
    assert pawapay.asked == [
        {
            "resource": "statements",
            "wallet": {"country": "BEN", "currency": "XOF"},
            "callbackUrl": NOTIFY,
            "startDate": "2022-12-18T00:00:00",
            "endDate": "2022-12-19T00:00:00",
            "compressed": False,
        }
    ], "the other wallet is of a country where no operator is ours"
    moved = Hundredths(3400_00)
    assert lines == [
        Line(1, "payment", ("dep-1",), moved, "XOF", "succeeded", later(START, HOUR), Hundredths(68_00)),
        Line(2, "refund", ("ref-1",), moved, "XOF", "succeeded", later(START, 2 * HOUR), None),
    ]


async def test_long_periods_are_asked_for_in_pieces() -> None:
    pawapay = FakePawaPay()
    assert isinstance(await pawapay.lines(later(START, 40 * DAY)), list)
    periods = [(asked["startDate"], asked["endDate"]) for asked in pawapay.asked]
    assert periods == [
        ("2022-12-18T00:00:00", "2023-01-18T00:00:00"),
        ("2023-01-18T00:00:00", "2023-01-27T00:00:00"),
    ]


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/v2/wallet-balances", said({}, 500)),
        ("/v2/wallet-balances", said({"balances": ["BEN"]})),
        ("statements", said({"status": "REJECTED", "failureReason": {"failureCode": "INVALID_PARAMETER"}})),
        ("statements", ProviderResponse.none(Unknown("no answer"))),
        ("/v2/statements/s-1", said({"status": "FOUND", "data": {"status": "FAILED"}})),
        ("/v2/statements/s-1", said({"status": "NOT_FOUND"})),
        ("https://files.example/1.csv", said(b"gone", 403)),
        ("https://files.example/1.csv", ProviderResponse(200, CSV.encode()[:200], complete=False)),
    ],
)
async def test_a_statement_that_does_not_come_is_unknown(path: str, answer: ProviderResponse) -> None:
    assert isinstance(await FakePawaPay(changed={path: answer}).lines(), Unknown)


@pytest.mark.parametrize(
    "file",
    [
        b"",
        b"<html>maintenance</html>",
        CSV.replace("Transaction ID", "Whatever").encode(),
        CSV.replace(",REFUND", "").encode(),
        CSV.encode() + b"\xff\xfe,,,,,,,\n",
    ],
)
async def test_a_file_that_is_no_statement_is_unknown(file: bytes) -> None:
    found = await FakePawaPay(file).lines()
    assert isinstance(found, Unknown)
    assert "cannot be read" in str(found.raw)


def _charge(number: int) -> dict[str, Any]:
    source = {"object": "charge", "id": f"ch_{number}", "amount": 5000, "currency": "xof"}
    known = {"amount": 5000, "currency": "xof", "created": START // 1_000_000, "fee": 0, "type": "charge"}
    return {**known, "id": f"txn_{number}", "source": source}


@pytest.mark.parametrize("second", [None, {"data": [], "has_more": True}, {"data": [{}], "has_more": False}, {}])
async def test_every_page_of_stripe_is_read(second: object) -> None:
    asked: list[str | None] = []

    async def get(path: str, query: Mapping[str, str]) -> ProviderResponse:
        asked.append(query.get("starting_after"))
        if asked[-1] is None:
            return said({"data": [_charge(1), _charge(2)], "has_more": True})
        return said({"data": [_charge(3)], "has_more": False} if second is None else second)

    lines = await stripe_history(get, START, later(START, DAY))
    assert asked == [None, "txn_2"]
    if second is None:
        assert isinstance(lines, list)
        assert [each.references for each in lines] == [("ch_1",), ("ch_2",), ("ch_3",)]
    else:
        assert isinstance(lines, Unknown)
