"""`guichet merchant`, `key`, `wallet` and `mode`: what they print, what they refuse."""

import pytest
from sqlalchemy import insert

from guichet.back_office.money_acts import wallet_subject
from guichet.bootstrap import service
from guichet.db.tables import payments
from guichet.domain.approvals import ActRequest
from guichet.domain.money import Hundredths
from guichet.domain.posting_rules import Movement, collection, float_account
from guichet.ledger import postings
from guichet.merchants import repository as merchants
from guichet.settings import Settings
from tests.approving import ask_and_approve
from tests.cli.conftest import Cli
from tests.db.rows import PAYMENT
from tests.fakes.clock import clock_of_the_machine
from tests.service_fixture import open_service

ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"


def test_merchants_are_created_listed_and_changed(cli: Cli) -> None:
    made = cli("merchant", "create", "Boutique [Awa]", "--json").json
    assert made.keys() == {"id", "name", "status", "keys"}
    assert (made["name"], made["status"]) == ("Boutique [Awa]", "active")
    assert {env: key[: len(f"sk_{env}_")] for env, key in made["keys"].items()} == {
        "test": "sk_test_",
        "live": "sk_live_",
    }
    second = cli("merchant", "create", "Zoé", "--status", "pending", "--currency", "eur", "--json").json
    assert second["status"] == "pending"

    changed = cli("merchant", "status", made["id"], "suspended", "--json").json
    assert (changed["id"], changed["status"]) == (made["id"], "suspended")

    listed = cli("merchant", "list", "--json").json["merchants"]
    assert [(each["id"], each["name"], each["status"], each["currency"]) for each in listed] == [
        (made["id"], "Boutique [Awa]", "suspended", "XOF"),
        (second["id"], "Zoé", "pending", "EUR"),
    ]
    table = cli("merchant", "list")
    assert table.code == 0
    assert "Boutique [Awa]" in table.out


def test_invalid_merchant_commands_are_refused(sqlite_cli: Cli) -> None:
    assert sqlite_cli("merchant", "status", 999, "active").refusal == "There is no merchant with the id 999."
    assert "not one of" in sqlite_cli("merchant", "status", 1, "frozen").misuse
    assert "is not an id" in sqlite_cli("merchant", "status", 2**63, "active").misuse
    assert "printable characters" in sqlite_cli("merchant", "create", "  ").misuse
    assert "printable characters" in sqlite_cli("merchant", "create", "a\x1b[2J").misuse
    assert "not one of" in sqlite_cli("merchant", "create", "X", "--currency", "GBP").misuse


def test_keys_are_created_listed_and_revoked(cli: Cli) -> None:
    merchant = cli("merchant", "create", "Awa", "--json").json
    made = cli(
        "key", "create", merchant["id"], "--env", "live", "--expires-at", "2090-01-31T12:00:00+01:00", "--json"
    ).json
    assert made.keys() == {"id", "key", "env", "expires_at"}
    assert made["key"].startswith("sk_live_")
    assert (made["env"], made["expires_at"]) == ("live", "2090-01-31T11:00:00.000000Z")
    endless = cli("key", "create", merchant["id"], "--env", "test", "--name", "Site", "--json").json
    assert (endless["expires_at"], endless["name"]) == (None, "Site")
    assert "60 characters" in cli("key", "create", merchant["id"], "--env", "test", "--name", "x" * 61).misuse

    first = cli("key", "revoke", made["id"], "--json").json
    assert (first["id"], first["merchant_id"], first["state"]) == (made["id"], merchant["id"], "revoked")
    assert cli("key", "revoke", made["id"], "--json").json["revoked_at"] == first["revoked_at"]

    shown = cli("key", "list", merchant["id"], "--json")
    keys = {key["id"]: key for key in shown.json["keys"]}
    assert len(keys) == 4
    assert keys[made["id"]]["state"] == "revoked"
    assert keys[endless["id"]] == {
        **keys[endless["id"]],
        "state": "active",
        "env": "test",
        "name": "Site",
        "expires_at": None,
    }
    for secret in (*merchant["keys"].values(), made["key"], endless["key"]):
        assert secret not in shown.out
        assert secret[12:] not in cli("key", "list", merchant["id"]).out


def test_a_key_that_may_less_and_only_from_some_addresses(cli: Cli) -> None:
    merchant = cli("merchant", "create", "Awa", "--json").json["id"]
    wanted = ("--scope", "refunds", "--scope", "payments:read", "--address", "10.0.0.7", "--address", "2001:DB8::/48")
    made = cli("key", "create", merchant, "--env", "live", *wanted, "--json").json
    assert (made["scopes"], made["addresses"]) == (["payments:read", "refunds"], ["10.0.0.7", "2001:db8::/48"])
    keys = {key["id"]: key for key in cli("key", "list", merchant, "--json").json["keys"]}
    assert keys.pop(made["id"])["scopes"] == ["payments:read", "refunds"]
    assert {(key["scopes"], key["addresses"]) for key in keys.values()} == {(None, None)}, "full, from everywhere"
    assert "payments:read, refunds" in cli("key", "list", merchant).out
    refusal = cli("key", "create", merchant, "--env", "test", "--address", "10.0.0.7").refusal
    assert refusal == "Only a live key can be limited to addresses."
    many = [part for number in range(21) for part in ("--address", f"10.0.0.{number}")]
    assert "20 addresses" in cli("key", "create", merchant, "--env", "live", *many).refusal


def test_invalid_key_commands_are_refused(sqlite_cli: Cli) -> None:
    assert sqlite_cli("key", "create", 999, "--env", "test").refusal == "There is no merchant with the id 999."
    assert sqlite_cli("key", "list", 999).refusal == "There is no merchant with the id 999."
    assert sqlite_cli("key", "revoke", 999).refusal == "There is no key with the id 999."
    assert "payments:write" in sqlite_cli("key", "create", 1, "--env", "test", "--scope", "payments").misuse
    assert "neither an address" in sqlite_cli("key", "create", 1, "--env", "live", "--address", "10.0.0.1/8").misuse
    past = sqlite_cli("key", "create", 1, "--env", "test", "--expires-at", "2020-01-01").refusal
    assert past == "A key that expired on 2020-01-01T00:00:00.000000Z would never work."
    assert "ISO-8601" in sqlite_cli("key", "create", 1, "--env", "test", "--expires-at", "tomorrow").misuse
    assert "--env" in sqlite_cli("key", "create", 1).misuse
    assert "not one of" in sqlite_cli("key", "create", 1, "--env", "prod").misuse


async def test_unfreezing_a_wallet_releases_the_waiting_credits(cli: Cli, settings: Settings) -> None:
    merchant = cli("merchant", "create", "Awa", "--json").json["id"]
    frozen = cli("wallet", "status", merchant, "xof", "Gelé", "--json").json
    assert (frozen["merchant_id"], frozen["env"], frozen["currency"]) == (merchant, "live", "XOF")
    assert (frozen["status"], frozen["balance"]) == ("Gelé", 0)
    async with service(settings) as opened:
        ctx = opened.ctx
        for number in range(250):  # more than one batch
            async with ctx.db.transaction() as tx:
                waiting = collection(
                    float_account("live", "", "XOF"), Hundredths(1_00), Hundredths(2), "XOF", to_suspense=True
                )
                await postings.post(
                    tx, [Movement(merchant, "live", "XOF", "payment.succeeded", number, waiting, ctx.clock.now())]
                )
    assert cli("wallet", "status", merchant, "XOF", "Fermé", "--json").json["balance"] == 0

    async with open_service(settings, clock_of_the_machine()) as running:
        await ask_and_approve(running.ctx, ActRequest("wallet.reopen", wallet_subject(merchant, "XOF"), {}, "seen"))
        await running.run_worker()
    shown = cli("wallet", "show", merchant, "--json").json
    assert shown["merchant_id"] == merchant
    assert {(each["env"], each["currency"], each["status"], each["balance"]) for each in shown["wallets"]} == {
        ("live", "XOF", "Actif", 250),
        ("test", "XOF", "Actif", 0),
    }
    assert "250" in cli("wallet", "show", merchant).out


def test_invalid_wallet_commands_are_refused(sqlite_cli: Cli) -> None:
    assert sqlite_cli("wallet", "show", 999).refusal == "There is no merchant with the id 999."
    assert sqlite_cli("wallet", "status", 999, "XOF", "Gelé").refusal == "There is no merchant with the id 999."
    assert "Actif, Gelé, Fermé" in sqlite_cli("wallet", "status", 1, "XOF", "Frozen").misuse
    assert "not one of" in sqlite_cli("wallet", "status", 1, "GBP", "Gelé").misuse


def test_a_status_in_decomposed_unicode_is_accepted(sqlite_cli: Cli) -> None:
    merchant = sqlite_cli("merchant", "create", "Awa", "--json").json["id"]
    assert sqlite_cli("wallet", "status", merchant, "XOF", "Gele\u0301", "--json").json["status"] == "Gelé"


def test_modes_are_listed_and_overridden(cli: Cli) -> None:
    merchant = cli("merchant", "create", "Awa", "--json").json["id"]
    for_one = cli("mode", "fee", "MTN", "--percent", "2.5", "--fixed", "100.50", "--merchant", merchant, "--json").json
    assert (for_one["operator"], for_one["merchant_id"]) == ("mtn", merchant)
    assert (for_one["fee_percent"], for_one["fee_fixed"], for_one["active"]) == (2.5, 100.5, True)
    for_all = cli("mode", "fee", "mtn", "--percent", "1.2345", "--json").json
    assert (for_all["merchant_id"], for_all["fee_percent"], for_all["fee_fixed"]) == (None, 1.2345, 0)
    assert cli("mode", "disable", "moov", "--merchant", merchant, "--json").json["active"] is False
    assert cli("mode", "disable", "visa", "--json").json["active"] is False

    def modes(*more: object) -> dict[str, tuple[bool, float, float]]:
        listed = cli("mode", "list", *more, "--json").json["modes"]
        return {mode["operator"]: (mode["active"], mode["fee_percent"], mode["fee_fixed"]) for mode in listed}

    defaults, one = modes(), modes("--merchant", merchant)
    assert len(defaults) == len(one) == 21
    assert (defaults["mtn"], one["mtn"]) == ((True, 1.2345, 0), (True, 2.5, 100.5))
    assert (defaults["moov"][0], one["moov"][0]) == (True, False)
    assert (defaults["VISA"][0], one["VISA"][0]) == (False, False)

    closed = cli("mode", "enable", "visa", "--merchant", merchant).refusal
    assert closed == "VISA is closed for everybody; open it first with `guichet mode enable VISA`."
    assert cli("mode", "enable", "visa", "--json").json["active"] is True
    assert cli("mode", "enable", "moov", "--merchant", merchant, "--json").json["active"] is True
    assert "1.2345 % + 0" in cli("mode", "list").out


def test_invalid_mode_commands_are_refused(sqlite_cli: Cli) -> None:
    unknown = "There is no operator 'mtm'; `guichet mode list` shows the codes."
    for verb in ("enable", "disable"):
        assert sqlite_cli("mode", verb, "mtm").refusal == unknown
    assert sqlite_cli("mode", "fee", "mtm", "--percent", "1", "--fixed", "0").refusal == unknown
    assert sqlite_cli("mode", "disable", "mtn", "--merchant", 999).refusal == "There is no merchant with the id 999."
    assert "give --percent, --fixed, or both" in sqlite_cli("mode", "fee", "mtn").misuse


@pytest.mark.parametrize(
    ("option", "figure", "code"),
    [
        ("--percent", "1.23456", 1),
        ("--fixed", "0.005", 1),
        ("--percent", "100.0001", 1),
        ("--percent", "1,75", 2),
        ("--fixed", "-1", 2),
        ("--fixed", "NaN", 2),
        ("--fixed", "1e30", 2),
    ],
)
def test_a_fee_with_too_many_decimals_is_refused(sqlite_cli: Cli, option: str, figure: str, code: int) -> None:
    done = sqlite_cli("mode", "fee", "mtn", f"{option}={figure}")
    assert (done.refusal if code == 1 else done.misuse).count(option)


async def test_names_are_stored_unchanged(sqlite_cli: Cli, sqlite_settings: Settings) -> None:
    made = sqlite_cli("merchant", "create", " Chez Ngoné & fils ", "--json").json
    async with service(sqlite_settings) as opened:
        found = await merchants.get(opened.ctx.db, made["id"])
    assert found is not None
    assert found.name == made["name"] == "Chez Ngoné & fils"


def test_a_time_zone_is_set_and_given_up(sqlite_cli: Cli) -> None:
    merchant = sqlite_cli("merchant", "create", "Awa", "--json").json["id"]
    assert sqlite_cli("merchant", "time-zone", merchant, "Africa/Dakar", "--json").json["time_zone"] == "Africa/Dakar"
    assert sqlite_cli("merchant", "list", "--json").json["merchants"][-1]["time_zone"] == "Africa/Dakar"
    assert "must be the name of a time zone" in sqlite_cli("merchant", "time-zone", merchant, "Mars/Base").misuse
    assert sqlite_cli("merchant", "time-zone", merchant, "--json").json["time_zone"] is None


def test_every_act_of_the_staff_is_in_the_audit_log(cli: Cli) -> None:
    merchant = cli("merchant", "create", "Awa", "--by", "Zoé [staff]", "--json").json["id"]
    cli("merchant", "status", merchant, "suspended", "--json")
    cli("merchant", "time-zone", merchant, "Africa/Dakar", "--json")
    key = cli("key", "create", merchant, "--env", "live", "--json").json["id"]
    cli("key", "revoke", key, "--json")
    cli("mode", "disable", "visa", "--by", "Zoé", "--json")
    assert cli("merchant", "status", 999, "active").code == 1, "what is refused is no act"

    entries = cli("audit-log", "list", "--json").json["entries"]
    assert [(each["action"], each["subject"], each["merchant_id"]) for each in reversed(entries)] == [
        ("merchant.created", str(merchant), merchant),
        ("merchant.status_changed", str(merchant), merchant),
        ("merchant.time_zone_changed", str(merchant), merchant),
        ("key.created", str(key), merchant),
        ("key.revoked", str(key), merchant),
        ("mode.changed", "VISA", None),
    ]
    assert (entries[0]["actor"], entries[0]["before"], entries[0]["after"]) == (
        "Zoé",
        {"active": True},
        {"active": False},
    )
    assert entries[4]["before"] == {"status": "active"}
    assert all(each["os_user"] for each in entries)
    assert "Zoé [staff]" in cli("audit-log", "list").out
    assert cli("audit-log", "list", "--about", key, "--json").json["entries"] == entries[1:3]
    done = cli("audit-log", "verify", "--json").json
    assert (done["entries"], done["fault"], done["head"]) == (6, None, entries[0]["digest"])
    assert cli("audit-log", "verify", "--known-head", "f" * 64).refusal.startswith(
        "The audit log does not contain the known head"
    )


@pytest.mark.both_databases
async def test_a_customer_is_anonymised(cli: Cli, settings: Settings) -> None:
    merchant = cli("merchant", "create", "Awa", "--json").json["id"]
    anonymise = ("merchant", "anonymise-customer")
    evidence = ("--evidence", "Lettre du 3 mai")
    assert "give --phone, --email, or both" in cli(*anonymise, merchant, *evidence).misuse
    assert "8 to 15 digits" in cli(*anonymise, merchant, "--phone", "12", *evidence).misuse
    assert "Missing option '--evidence'" in cli(*anonymise, merchant, "--phone", "22997001234").misuse
    assert cli(*anonymise, 999, "--phone", "22997001234", *evidence).refusal == "There is no merchant with the id 999."
    row = {**PAYMENT, "merchant_id": merchant, "phone_number": "22997001234", "email": "Awa@example.com"}
    ended = {"status": "succeeded", "next_poll_at": None, "reference": "11111111-2222-4333-8444-555555555555"}
    async with service(settings) as opened:
        await opened.ctx.db.write(insert(payments).values({**row, **ended, "env": "live"}))
        await opened.ctx.db.write(insert(payments).values(row))
    done = cli(*anonymise, merchant, "--phone", "+22997001234", *evidence, "--json").json
    assert done == {
        "merchant_id": merchant, "payments": 1, "refunds": 0, "deliveries": 0, "incidents": 0,
        "unmatched_callbacks": 0, "waiting": [PAYMENT["reference"]],
    }  # fmt: skip
    again = cli(*anonymise, merchant, "--email", "AWA@example.com", *evidence)
    assert "0 payments" in again.out
    assert PAYMENT["reference"] in again.out
    assert "Lettre du 3 mai" in cli("audit-log", "list", "--json").out
