"""Commands that move money only ask for it; `guichet approval` shows what waits."""

import sqlite3
from contextlib import closing

from tests.cli.conftest import Cli

REFERENCE = "01a202b1-10b7-453a-868b-cad7dfa87efe"
SAID = ("--evidence", "ticket 4711", "--by")


def _join(cli: Cli, email: str) -> None:
    """Invites somebody, who accepts."""
    assert cli("user", "invite", email, "--name", email[:3], "--staff", "--role", "finance").code == 0
    with closing(sqlite3.connect(cli.environ["GUICHET_HOME"] + "/guichet.db")) as db, db:
        db.execute("UPDATE users SET status = 'active', password_hash = 'x' WHERE email = ?", (email,))


def test_a_money_act_waits_for_another_person(sqlite_cli: Cli) -> None:
    sqlite_cli("merchant", "create", "Boutique Awa")
    cli = sqlite_cli.having(GUICHET_PROFILE="production", GUICHET_PUBLIC_URL="https://pay.example.com")
    assert cli("wallet", "status", 1, "XOF", "Gelé").code == 0, "freezing waits for nobody"
    reopen = ("wallet", "status", 1, "XOF", "Actif")
    assert "--evidence is expected" in cli(*reopen).misuse
    assert "the staff has no account yet: invite two" in cli(*reopen, *SAID, "awa@example.com").refusal
    _join(cli, "awa@example.com")
    assert "another person must join the staff first" in cli(*reopen, *SAID, "awa@example.com").refusal
    _join(cli, "zoe@example.com")
    assert "--by is the e-mail address of your account" in cli(*reopen, *SAID, "Awa").refusal
    asked = cli(*reopen, *SAID, "Awa@example.com", "--json").json
    assert (asked["approval"], asked["at"]) == (1, "https://pay.example.com/admin/approvals/1")
    assert cli("wallet", "show", 1, "--json").json["wallets"][0]["status"] == "Gelé"
    assert "waits already" in cli(*reopen, *SAID, "zoe@example.com").refusal

    (listed,) = cli("approval", "list", "--json").json["approvals"]
    shown = cli("approval", "show", 1, "--json").json
    assert listed == shown
    assert (shown["act"], shown["subject"], shown["status"]) == ("wallet.reopen", "1/XOF", "pending")
    assert (shown["requested_by"], shown["reason"]) == ("awa@example.com", "ticket 4711")
    assert "1/XOF" in cli("approval", "show", 1).out
    assert cli("approval", "show", 2).refusal == "There is no request 2."
    (entry,) = cli("audit-log", "list", "--about", "1/XOF", "--json").json["entries"]
    assert (entry["action"], entry["actor"]) == ("approval.requested", "awa@example.com")

    settle = ("payment", "settle", REFERENCE, "--failed")
    assert cli(*settle, *SAID, "awa@example.com").refusal == f"There is no payment {REFERENCE}."
    for command in (
        ("refund", "settle", REFERENCE, "--failed"),
        ("refund", "confirm-payee", REFERENCE, "--phone", "2290197001234"),
        ("late-money", "resolve", REFERENCE, "--to", "wallet"),
        ("dispute", "resolve", REFERENCE, "--from", "merchant"),
    ):
        assert "There is no" in cli(*command, *SAID, "awa@example.com").refusal
