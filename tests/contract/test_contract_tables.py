"""The pure rules agree with docs/contract.md, row by row and in both directions.

What only a running server can show (status codes, fields of an answer, bounds of a request) is held by its neighbours.
"""

from typing import Any, cast

import pytest

from guichet.api.http import ORDERS
from guichet.clock import SECOND, Instant, later
from guichet.domain import catalogue, events, merchants, money, payments, refund_proposals, sandbox_scenarios
from guichet.domain import payment_links as links
from guichet.domain import posting_rules as ledger
from guichet.domain.errors import BY_CODE, CONFLICT_REASONS, ERROR_REASONS
from guichet.domain.failures import FAILURE_CODES, REFUND_FAILURE_CODES
from guichet.domain.merchants import Environment
from guichet.merchants import api_keys
from guichet.merchants.catalogue_file import load_catalogue
from guichet.providers.base import Accepted, Charge, Refused, StatusResult, Succeeded
from guichet.providers.sandbox import provider as sandbox
from guichet.schemas import stated_fields
from guichet.schemas.envelope import SENTENCES
from guichet.schemas.validation import MAX_BODY, MAX_DEPTH
from guichet.webhooks.sender import USER_AGENT, sign
from tests.contract.tables import Row, column, table, tables


def _yes(cell: str) -> bool:
    assert cell in ("yes", "no")
    return cell == "yes"


def _transitions(name: str) -> dict[str, payments.Transition]:
    return {
        # The words of the page, which the test compares with ours.
        row["Trigger"]: payments.Transition(*cast(Any, (row["Recorded from"] or None, row["To"], row["Event"] or None)))
        for row in table(name)
    }


# --- states and events ------------------------------------------------------------------------------------------------


def test_payment_transitions() -> None:
    assert _transitions("payment-transitions") == payments.PAYMENT_TRANSITIONS


def test_refund_transitions() -> None:
    assert _transitions("refund-transitions") == payments.REFUND_TRANSITIONS


@pytest.mark.parametrize(
    ("name", "statuses"),
    [("payment-transitions", payments.PAYMENT_STATUSES), ("refund-transitions", payments.REFUND_STATUSES)],
)
def test_every_status_is_reached_by_a_transition(name: str, statuses: tuple[str, ...]) -> None:
    assert set(column(name, "To")) == set(statuses)


def test_merchants_see_a_payment_start_where_it_is_recorded_to_start() -> None:
    differing = [row["Trigger"] for row in table("payment-transitions") if row["From"] != row["Recorded from"]]

    assert differing == ["refused_at_initiation"]


def test_listed_events_are_those_of_an_endpoint_in_order() -> None:
    listed = [row["Event"] for row in table("events") if _yes(row["Listed"])]

    assert tuple(listed) == events.EVENTS
    assert [row["Event"] for row in table("events") if not _yes(row["Listed"])] == [
        events.WEBHOOK_TEST,
        *events.DISPUTE_EVENTS,
        *events.SESSION_EVENTS,
    ]


def test_every_listed_event_belongs_to_exactly_one_transition() -> None:
    implied = [row["Event"] for name in ("payment-transitions", "refund-transitions") for row in table(name)]

    assert sorted(filter(None, implied)) == sorted(events.EVENTS)


def test_an_event_carries_the_resource_it_is_named_after() -> None:
    carried = {row["Event"]: row["Data"] for row in table("events") if _yes(row["Listed"])}

    assert carried == {event: event.partition(".")[0] for event in events.EVENTS}


def test_delivery_statuses_and_transitions() -> None:
    assert tuple(column("delivery-statuses", "Status")) == events.DELIVERY_STATUSES
    assert {row["From"] for row in table("delivery-transitions")} == {"pending"}
    assert set(column("delivery-transitions", "To")) == set(events.DELIVERY_STATUSES)


def test_wallet_statuses() -> None:
    assert tuple(column("wallet-statuses", "Status")) == ledger.WALLET_STATUSES
    assert [row["Status"] for row in table("wallet-statuses") if row["Movements"] == "accepted"] == [ledger.ACTIVE]


def test_session_statuses() -> None:
    rows = table("session-transitions")

    assert {rows[0]["From"], *column("session-transitions", "To")} == set(links.SESSION_STATUSES)
    assert tuple(row["Event"] for row in rows) == events.SESSION_EVENTS


def test_proposal_statuses() -> None:
    rows = table("proposal-transitions")

    assert (rows[0]["From"], *column("proposal-transitions", "To")) == refund_proposals.PROPOSAL_STATUSES


def test_link_types() -> None:
    assert tuple(column("link-types", "Type")) == links.LINK_TYPES
    assert [row["Type"] for row in table("link-types") if _yes(row["Default"])] == [links.PERMANENT]


# --- errors -----------------------------------------------------------------------------------------------------------


def test_error_codes_and_their_http_status() -> None:
    assert {row["Code"]: int(row["HTTP"]) for row in table("errors")} == {
        code: error.status for code, error in BY_CODE.items()
    }


def test_every_error_has_its_retry_guidance() -> None:
    assert {int(cell) for cell in column("retry-guidance", "HTTP")} == {error.status for error in BY_CODE.values()}


def test_failure_codes() -> None:
    assert tuple(column("failure-codes", "Code")) == FAILURE_CODES
    assert tuple(column("refund-failure-codes", "Code")) == REFUND_FAILURE_CODES


def test_error_reasons() -> None:
    rows = table("error-reasons")

    assert tuple(row["Reason"] for row in rows if row["Code"] == "conflict") == CONFLICT_REASONS
    assert {row["Code"] for row in rows} <= set(BY_CODE)
    assert set(ERROR_REASONS) == {*FAILURE_CODES, *CONFLICT_REASONS}


def test_warning_codes() -> None:
    assert tuple(column("warnings", "Code")) == tuple(SENTENCES)
    known = {f"{row['Method']} {row['Path']}" for row in table("endpoints")}
    assert set(column("warnings", "On")) <= known


def test_stated_figures() -> None:
    stated = {
        endpoint: {row["Field"] for row in table("stated-figures") if row["Endpoint"] == endpoint}
        for endpoint in column("stated-figures", "Endpoint")
    }
    assert stated == {
        "POST /payments": {*stated_fields.PAYMENT, *stated_fields.PAYMENT_FIGURES},
        "POST /payments/{reference}/refund": {*stated_fields.REFUND, *stated_fields.REFUND_FIGURES, "currency"},
        "POST /payment-links": {*stated_fields.LINK, "currency"},
        "POST /checkout-sessions": {*stated_fields.SESSION},
    }


# --- limits and the retry schedule ------------------------------------------------------------------------------------


def test_the_retry_schedule() -> None:
    rows = table("retry-schedule")
    # What the service waits before attempt n is what it answers after n - 1 attempts; the first leaves at once.
    waits = [0] + [events.retry_delay(attempts) for attempts in range(1, events.MAX_ATTEMPTS)]

    assert [int(row["Attempt"]) for row in rows] == list(range(1, events.MAX_ATTEMPTS + 1))
    assert [int(row["Delay (seconds)"]) for row in rows] == waits
    assert events.retry_delay(len(rows)) is None


#: Limits that a rule of the domain or of the JSON layer states; the others belong to a running server.
STATED_IN_CODE = {
    "amount min": money.MIN_AMOUNT / 100,
    "amount max": money.MAX_AMOUNT / 100,
    "debit min": catalogue.MIN_DEBIT / 100,
    "debit max": catalogue.MAX_DEBIT / 100,
    "webhook answer time": events.ANSWER_TIMEOUT,
    "webhook attempts": events.MAX_ATTEMPTS,
    "signature age": events.SIGNATURE_AGE,
    "body size": MAX_BODY,
    "body depth": MAX_DEPTH,
}
HELD_OVER_HTTP = {
    "request rate",
    "per_page max",
    "per_page default",
    "phone digits min",
    "phone digits max",
    "webhook url length",
    "read timeout advised",
}


def test_limits() -> None:
    limits = {row["Limit"]: int(row["Value"]) for row in table("limits")}

    assert {name: limits[name] for name in STATED_IN_CODE} == STATED_IN_CODE
    assert set(limits) == set(STATED_IN_CODE) | HELD_OVER_HTTP


def test_limits_and_request_tables_say_the_same() -> None:
    limits = {row["Limit"]: row["Value"] for row in table("limits")}
    for endpoint, rows in tables("request").items():
        for row in rows:
            if row["Field"] == "amount":
                assert (row["Min"], row["Max"]) == (limits["amount min"], limits["amount max"]), endpoint
            if row["Field"] == "per_page":
                assert (row["Max"], row["Default"]) == (limits["per_page max"], limits["per_page default"]), endpoint
            if row["Field"] == "phone_number" and endpoint != "GET /payments":
                expected = (limits["phone digits min"], limits["phone digits max"])
                assert (row["Min length"], row["Max length"]) == expected, endpoint
            if row["Type"].startswith("https url"):
                assert row["Max length"] == limits["webhook url length"], endpoint


def test_currencies() -> None:
    assert {row["Currency"]: int(row["Decimals"]) for row in table("currencies")} == money.DECIMALS
    assert tuple(column("currencies", "Currency")) == money.CURRENCIES
    assert [row["Currency"] for row in table("currencies") if _yes(row["Default"])] == [money.DEFAULT_CURRENCY]


# --- requests ---------------------------------------------------------------------------------------------------------


def _default(endpoint: str, field: str) -> str:
    [row] = [row for row in tables("request")[endpoint] if row["Field"] == field]
    return row["Default"]


def test_default_values() -> None:
    assert _default("POST /payments", "currency") == money.DEFAULT_CURRENCY
    assert _default("POST /payments", "description") == payments.DEFAULT_DESCRIPTION
    assert _default("POST /payments", "customer.country") == payments.DEFAULT_COUNTRY
    assert _default("POST /payments/{reference}/refund", "reason") == payments.DEFAULT_REASON
    assert _default("POST /payment-links", "type") == links.PERMANENT
    assert _default("GET /balance", "currency") == money.DEFAULT_CURRENCY


@pytest.mark.parametrize(
    ("endpoint", "field", "values"),
    [
        ("POST /payments", "currency", money.CURRENCIES),
        ("POST /payments", "test_scenario", sandbox_scenarios.TEST_SCENARIOS),
        ("GET /balance", "currency", money.CURRENCIES),
        ("GET /payments", "status", payments.PAYMENT_STATUSES),
        ("GET /webhooks/deliveries", "status", events.DELIVERY_STATUSES),
        ("GET /webhooks/deliveries", "event", events.EVENT_NAMES),
        *(
            (f"GET {path}", "order", ORDERS)
            for path in ("/payments", "/refunds", "/payment-links", "/webhooks/deliveries")
        ),
        ("POST /payment-links", "type", links.LINK_TYPES),
        ("GET /payment-modes", "type", tuple(t for t in catalogue.MODE_TYPES if t != "other")),
    ],
)
def test_accepted_values(endpoint: str, field: str, values: tuple[str, ...]) -> None:
    [row] = [row for row in tables("request")[endpoint] if row["Field"] == field]

    assert tuple(row["Values"].split(", ")) == values


def test_every_endpoint_that_takes_fields_has_its_request_table() -> None:
    known = {f"{row['Method']} {row['Path']}": row for row in table("endpoints")}
    without_fields = {
        "GET /payments/{reference}",
        "GET /payments/{reference}/refund-proposal",
        "GET /refunds/{reference}",
        "GET /payment-links/{id}",
        "POST /payment-links/{id}/close",
        "GET /checkout-sessions/{id}",
        "POST /checkout-sessions/{id}/expire",
        "GET /webhooks/endpoint",
        "POST /webhooks/test",
        "POST /webhooks/deliveries/{id}/resend",
    }

    assert len(known) == 25
    assert set(tables("request")) == set(known) - without_fields
    paginated = {name for name, row in known.items() if row["Paginated"] != "no"}
    assert paginated == {name for name, rows in tables("request").items() if "per_page" in {r["Field"] for r in rows}}


def test_every_endpoint_answers_a_resource_that_is_described() -> None:
    answered = {data.removesuffix("[]") for data in column("endpoints", "Data")}

    inside = {f"payment.{part}" for part in ("payment_mode", "customer", "failure", "payment_link")}
    assert answered | inside | {"refund.failure"} == set(tables("resource"))


def test_key_prefixes() -> None:
    assert {row["Environment"] for row in table("keys")} == set(merchants.ENVS)
    for row in table("keys"):
        key = api_keys.new_key(cast(Environment, row["Environment"]))
        assert key.startswith(row["Prefix"])
        assert api_keys.key_env(key) == row["Environment"]


# --- operators --------------------------------------------------------------------------------------------------------


def _described(mode: catalogue.PaymentMode) -> Row:
    return {
        "Code": mode.operator,
        "Type": mode.type,
        "Country": mode.country or "",
        "ISO-2": mode.country_code or "",
        "Dial code": mode.dial_code or "",
        "OTP": "yes" if mode.requires_otp else "no",
        "Return URL": "yes" if mode.requires_return_url else "no",
    }


def test_the_packaged_catalogue_holds_exactly_the_operators_of_the_contract() -> None:
    assert [_described(mode) for mode in load_catalogue(None).modes] == table("operators")


def test_mode_types() -> None:
    assert tuple(column("mode-types", "Type")) == catalogue.MODE_TYPES
    assert [row["Type"] for row in table("mode-types") if not _yes(row["Filter"])] == ["other"]


# --- the test environment ---------------------------------------------------------------------------------------------

BORN = Instant(1_000_000 * SECOND)


class StandingClock:
    """Shows the time it was given."""

    def __init__(self, now: Instant) -> None:
        self._now = now

    def now(self) -> Instant:
        return self._now

    def monotonic(self) -> int:
        return 0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("the sandbox never waits")


def _charge(suffix: str) -> Charge:
    payment = payments.unstored_payment(
        reference="r",
        operator="mtn",
        total_amount=money.Hundredths(500_000),
        currency="XOF",
        created_at=BORN,
        phone_number="2290190" + suffix,
    )
    return Charge(payment, payment.total_amount)


async def _status(charge: Charge, age: int) -> str:
    answer: StatusResult = await sandbox.Sandbox(StandingClock(later(BORN, age))).status(charge)
    return {Accepted: "pending", Succeeded: "succeeded", Refused: "failed"}[type(answer)]


def test_the_suffixes_of_the_sandbox_are_those_of_the_contract() -> None:
    assert set(column("sandbox", "Suffix")) == set(sandbox.SUFFIXES) | {"other"}


def test_the_scenarios_of_the_sandbox_are_those_of_the_contract() -> None:
    assert tuple(column("sandbox-scenarios", "Scenario")) == sandbox_scenarios.TEST_SCENARIOS
    by_scenario = {row["Scenario"] for row in table("sandbox-scenarios") if row["By"] == "scenario"}
    assert by_scenario == sandbox_scenarios.MOBILE_MONEY_ONLY


@pytest.mark.parametrize("row", table("sandbox"), ids=column("sandbox", "Suffix"))
async def test_the_sandbox_does_what_the_suffix_says(row: Row) -> None:
    charge = _charge("1234" if row["Suffix"] == "other" else row["Suffix"])
    created = await sandbox.Sandbox(StandingClock(BORN)).initiate(charge)

    assert {Accepted: "pending", Refused: "failed"}[type(created)] == row["At creation"]
    assert row["HTTP"] == {"pending": "201", "failed": "402"}[row["At creation"]]
    if row["Delay (seconds)"]:
        due = int(row["Delay (seconds)"]) * SECOND
        assert await _status(charge, due) == row["Final status"]
        assert due == 0 or await _status(charge, due - 1) == "pending"
    assert await _status(charge, 365 * 24 * 3600 * SECOND) == row["Final status"]


# --- webhooks ---------------------------------------------------------------------------------------------------------


def test_the_user_agent_and_the_shape_of_the_signature() -> None:
    headers = {row["Header"]: row["Value"] for row in table("webhook-headers")}

    assert headers["User-Agent"] == USER_AGENT
    shape = headers["X-Service-Signature"].replace("<unix seconds>", "1700000000")
    signature = sign("whsec_x", 1_700_000_000, b"{}")
    assert signature.startswith(shape.partition("<")[0])
    assert len(signature) == len(shape.partition("<")[0]) + 64
