"""`guichet user`: what it prints, what it refuses, and that its links work once."""

import re
import sqlite3
from contextlib import closing

from tests.cli.conftest import Cli

INVITED = r"http://\S+/console/invitation/[A-Za-z0-9_-]{43}"


def test_people_are_invited_listed_changed_and_disabled(cli: Cli) -> None:
    merchant = cli("merchant", "create", "Boutique Awa", "--json").json["id"]
    made = cli(
        "user", "invite", "Awa@Example.com", "--name", "Awa", "--merchant", merchant, "--role", "owner", "--json"
    ).json
    assert (made["email"], made["status"], made["staff_role"]) == ("awa@example.com", "invited", None)
    assert re.fullmatch(INVITED, made["link"])
    again = cli("user", "invite", "awa@example.com", "--name", "Awa", "--merchant", merchant, "--role", "finance")
    assert re.search(INVITED, again.out)
    assert made["link"] not in again.out

    listed = cli("user", "list", "--merchant", merchant, "--json").json["users"]
    assert [(each["email"], each["role"], each["codes"]) for each in listed] == [("awa@example.com", "finance", False)]
    assert cli("user", "list", "--json").json == {"users": []}

    role = ("user", "role", "awa@example.com", "reader", "--merchant", merchant)
    assert "is not in the team" in cli(*role).refusal, "nobody is in a team before they accept"
    assert "is disabled" in cli("user", "disable", "awa@example.com").out
    refused = cli("user", "invite", "awa@example.com", "--name", "Awa", "--merchant", merchant, "--role", "owner")
    assert "is disabled" in refused.refusal
    assert "is invited" in cli("user", "enable", "awa@example.com").out
    assert cli("user", "reset-factor", "awa@example.com").code == 0
    assert "no longer with" in cli("user", "role", "awa@example.com", "none", "--merchant", merchant).out
    assert cli("user", "list", "--merchant", merchant, "--json").json == {"users": []}

    log = cli("audit-log", "list", "--json").out
    for action in ("user.invited", "user.invitation_withdrawn", "user.disabled", "user.enabled", "user.factor_reset"):
        assert action in log


def _accepted(cli: Cli, merchant: int) -> None:
    """As the page of the invitation does it."""
    with closing(sqlite3.connect(cli.environ["GUICHET_HOME"] + "/guichet.db")) as db, db:
        db.execute("INSERT INTO memberships SELECT id, ?, 'owner', created_at FROM users", (merchant,))


def test_what_does_not_fit_is_refused(sqlite_cli: Cli) -> None:
    merchant = sqlite_cli("merchant", "create", "Boutique Awa", "--json").json["id"]
    invite = ("user", "invite", "awa@example.com", "--name", "Awa")
    assert "`--merchant MERCHANT_ID` or `--staff`" in sqlite_cli(*invite, "--role", "owner").misuse
    assert "admin is no role here" in sqlite_cli(*invite, "--merchant", merchant, "--role", "admin").misuse
    assert "owner is no role here" in sqlite_cli(*invite, "--staff", "--role", "owner").misuse
    assert sqlite_cli(*invite, "--merchant", 999, "--role", "owner").refusal == "There is no merchant with the id 999."
    assert "An e-mail address is expected" in sqlite_cli("user", "disable", "awa").misuse
    assert sqlite_cli("user", "disable", "awa@example.com").refusal == "Nobody has the address awa@example.com."
    assert sqlite_cli(*invite, "--merchant", merchant, "--role", "owner").code == 0
    _accepted(sqlite_cli, merchant)
    last = sqlite_cli("user", "role", "awa@example.com", "reader", "--merchant", merchant)
    assert "is the last owner" in last.refusal
    other = sqlite_cli("merchant", "create", "Autre", "--json").json["id"]
    assert "is not in the team" in sqlite_cli("user", "role", "awa@example.com", "reader", "--merchant", other).refusal


def test_staff_and_a_team_are_apart(sqlite_cli: Cli) -> None:
    merchant = sqlite_cli("merchant", "create", "Boutique Awa", "--json").json["id"]
    ada = ("user", "invite", "ada@example.com", "--name", "Ada")
    assert sqlite_cli(*ada, "--staff", "--role", "admin").code == 0
    assert "belongs to the staff" in sqlite_cli(*ada, "--merchant", merchant, "--role", "owner").refusal
    assert [each["role"] for each in sqlite_cli("user", "list", "--json").json["users"]] == ["admin"]
