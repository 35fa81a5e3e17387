"""Who acts by a command: the operating-system user is not chosen, and names of others cannot be borrowed."""

import os
import pwd
import sqlite3
from contextlib import closing
from typing import Any

from tests.cli.conftest import Cli

#: The user of this process.
REAL = pwd.getpwuid(os.getuid()).pw_name


def _last(cli: Cli) -> dict[str, Any]:
    entries: list[dict[str, Any]] = cli("audit-log", "list", "--json").json["entries"]
    return entries[0]


def _sql(cli: Cli, statement: str, *values: object) -> list[Any]:
    with closing(sqlite3.connect(cli.environ["GUICHET_HOME"] + "/guichet.db")) as db, db:
        return db.execute(statement, values).fetchall()


def test_variables_of_the_environment_name_nobody(sqlite_cli: Cli) -> None:
    cli = sqlite_cli
    merchant = cli("merchant", "create", "Awa", "--json").json["id"]
    lying = cli.having(SUDO_USER="console", LOGNAME="zoe", USER="zoe")
    lying("merchant", "status", merchant, "suspended", "--by", "Rose")
    entry = _last(cli)
    assert entry["actor"] == "Rose"
    assert entry["os_user"] == f"{REAL} (sudo: console)"
    cli.having(SUDO_USER="", LOGNAME="zoe")("merchant", "status", merchant, "active")
    assert (_last(cli)["actor"], _last(cli)["os_user"]) == (REAL, REAL)


def test_a_command_borrows_no_name_of_somebody_with_an_account(sqlite_cli: Cli) -> None:
    cli = sqlite_cli
    merchant = cli("merchant", "create", "Awa", "--json").json["id"]
    invite = ("user", "invite")
    assert cli(*invite, "zoe@example.com", "--name", "Zoé Ba", "--staff", "--role", "admin").code == 0
    assert cli(*invite, "awa@example.com", "--name", "Awa", "--merchant", merchant, "--role", "owner").code == 0
    alike = ("Zoe\u0301 Ba", "Zoé  Ba", "ＺＯＥ", "ａｗａ@example.com", "ｃonsole")
    for name in ("console", "Console", "zoe", "zoe@example.com", "Zoé Ba", "zoé ba", "awa@example.com", *alike):
        refused = cli("merchant", "status", merchant, "suspended", "--by", name).refusal
        assert f"“{name}” is the console or a person with an account" in refused
    assert cli("merchant", "list", "--json").json["merchants"][-1]["status"] == "active", "nothing was done"
    assert cli("merchant", "status", merchant, "suspended", "--by", "Zoé B.").code == 0
    own = ("--name", REAL, "--staff", "--role", "support")
    assert cli(*invite, f"{REAL}@example.com", *own).code == 0
    assert cli("merchant", "status", merchant, "active", "--by", f"{REAL}@example.com").code == 0, "it is them"


def test_an_owner_of_a_merchant_is_not_put_into_the_staff(sqlite_cli: Cli) -> None:
    cli = sqlite_cli
    merchant = cli("merchant", "create", "Boutique Awa", "--json").json["id"]
    cli("user", "invite", "awa@example.com", "--name", "Awa", "--merchant", merchant, "--role", "owner")
    _sql(cli, "INSERT INTO memberships SELECT id, ?, 'owner', created_at FROM users", merchant)
    refused = cli("user", "role", "awa@example.com", "admin", "--staff").refusal
    assert "is in a merchant's team" in refused
    assert cli("user", "list", "--json").json == {"users": []}


def test_the_last_admin_is_not_made_less_by_an_invitation(sqlite_cli: Cli) -> None:
    cli = sqlite_cli
    zoe = ("user", "invite", "zoe@example.com", "--name", "Zoé", "--staff", "--role")
    assert cli(*zoe, "admin").code == 0
    assert "is the last active admin" in cli(*zoe, "support").refusal


def test_the_shell_acts_at_once_and_mails_who_ran_it(sqlite_cli: Cli) -> None:
    """How a company gets back in: both hear of it, with the user of the process."""
    cli = sqlite_cli
    for name in ("zoe", "ada"):
        assert cli("user", "invite", f"{name}@example.com", "--name", name, "--staff", "--role", "admin").code == 0
    _sql(cli, "UPDATE users SET status = 'active', password_hash = 'x'")
    assert cli("user", "disable", "zoe@example.com", "--by", "Rose").code == 0
    mailed = _sql(cli, "SELECT recipient FROM mails WHERE kind = 'approver_removed' ORDER BY recipient")
    assert mailed == [("ada@example.com",), ("zoe@example.com",)]
    assert cli("user", "enable", "zoe@example.com").code == 0
    assert cli("user", "list", "--json").json["users"][0]["status"] == "active"
    merchant = cli("merchant", "create", "Boutique Awa", "--json").json["id"]
    cli("user", "invite", "awa@example.com", "--name", "Awa", "--merchant", merchant, "--role", "owner")
    join = "INSERT INTO memberships SELECT id, ?, 'owner', created_at FROM users WHERE email = 'awa@example.com'"
    _sql(cli, join, merchant)
    cli("user", "invite", "eve@example.com", "--name", "Eve", "--merchant", merchant, "--role", "owner")
    told = "SELECT recipient FROM mails WHERE kind = 'team_changed'"
    assert _sql(cli, told) == [("awa@example.com",)]
    cli("user", "invite", "zed@example.com", "--name", "Zed", "--merchant", merchant, "--role", "reader")
    _sql(cli, join.replace("awa", "zed").replace("'owner'", "'reader'"), merchant)
    assert cli("user", "role", "zed@example.com", "owner", "--merchant", merchant).code == 0
    assert _sql(cli, told) == [("awa@example.com",)] * 3, "of another owner by a role as well"
