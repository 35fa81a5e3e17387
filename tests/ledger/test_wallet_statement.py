"""`guichet ledger statement`: a statement that an accountant can check, on screen, as CSV and as JSON."""

import csv
import json
from datetime import datetime, timedelta
from typing import Any

from guichet.clock import to_datetime
from guichet.settings import Settings
from tests.cli.conftest import Cli
from tests.ledger.ledger_history import LedgerHistory, RawSql, live, yesterday


async def _history_and_balance(settings: Settings) -> tuple[LedgerHistory, Any, str]:
    """A history, the wallet's balance at its end, and the day of the history."""
    async with yesterday(settings) as service:
        history = await live(service)
        balance = (await history.merchant.live.get("/balance")).data["balance"]
        return history, balance, to_datetime(service.clock.now()).date().isoformat()


def _amount(payment: Any) -> int:
    return int(payment["amount"] * 100)


async def test_the_statement_adds_up_to_the_balance(settings: Settings, cli: Cli, raw_sql: RawSql) -> None:
    history, balance, _ = await _history_and_balance(settings)
    done = cli("ledger", "statement", history.merchant.id, "xof", "--json")
    assert done.code == 0
    said = json.loads(done.out)
    assert (said["opening"], said["closing"]) == (0, balance)
    running = 0
    for each in said["movements"]:
        running += each["amount"]
        assert each["balance"] == running
    kinds = [each["kind"] for each in said["movements"]]
    assert kinds.count("payment.succeeded") == 4
    assert kinds.count("refund.requested") == 3
    assert kinds.count("refund.failed") == kinds.count("suspense.released") == 1
    taken = [history.paid, history.refunded, history.returning, history.given_back]
    collected = sum(_amount(each) for each in taken) / 100 + 8000
    assert said["totals"]["collections"] == collected
    assert said["totals"]["refunds"] == (_amount(history.refunded) + _amount(history.returning)) / 100
    assert balance == collected - said["totals"]["refunds"]
    assert said["totals"]["credits"] - said["totals"]["debits"] == balance
    [(fees,)] = await raw_sql.run(
        "SELECT sum(CASE WHEN destination = 'fees' THEN amount ELSE -amount END) FROM postings"
        f" WHERE 'fees' IN (source, destination) AND merchant_id = {history.merchant.id}"
        " AND env = 'live' AND currency = 'XOF'"
    )
    assert said["totals"]["fees"] == int(fees) / 100 > 0
    [released] = [each for each in said["movements"] if each["kind"] == "suspense.released"]
    assert (released["external_id"], released["amount"]) == ("frozen", 8000)
    [back] = [each for each in said["movements"] if each["kind"] == "refund.failed"]
    assert back["payment"] == history.given_back["reference"]
    assert back["refund"] is not None


async def test_adjacent_periods_of_a_statement_join(settings: Settings, cli: Cli) -> None:
    history, balance, _ = await _history_and_balance(settings)
    whole = json.loads(cli("ledger", "statement", history.merchant.id, "XOF", "--json").out)["movements"]
    cut = whole[3]["date"]
    before = json.loads(cli("ledger", "statement", history.merchant.id, "XOF", "--to", cut, "--json").out)
    since = (datetime.fromisoformat(cut) + timedelta(microseconds=1)).isoformat()
    after = json.loads(cli("ledger", "statement", history.merchant.id, "XOF", "--from", since, "--json").out)
    assert after["opening"] == before["closing"]
    assert after["closing"] == balance
    assert before["movements"] + after["movements"] == whole
    assert before["movements"]
    assert after["movements"]


async def test_the_csv_opens_in_a_spreadsheet(settings: Settings, cli: Cli) -> None:
    history, balance, day = await _history_and_balance(settings)
    done = cli("ledger", "statement", history.merchant.id, "XOF", "--from", day, "--to", day, "--csv")
    assert done.code == 0
    assert done.out.startswith("\ufeffDate (UTC);Nature;")
    rows = list(csv.DictReader(done.out.removeprefix("\ufeff").splitlines(), delimiter=";"))
    assert (rows[0]["Nature"], rows[0]["Solde"]) == ("Solde à l'ouverture", "0,00")
    closing = next(row for row in rows if row["Nature"] == "Solde à la clôture")
    assert closing["Solde"] == f"{balance},00"
    moves = [row for row in rows if row["Écriture"]]
    debited, credited = (
        sum(int(row[side].replace(",", "")) for row in moves if row[side]) for side in ("Débit", "Crédit")
    )
    assert credited - debited == balance * 100
    assert all(bool(row["Débit"]) != bool(row["Crédit"]) for row in moves)
    [first] = [row for row in moves if row["Référence du paiement"] == history.paid["reference"]]
    assert first["Référence marchand"] == "'=order 1", "no formula reaches a spreadsheet"
    assert first["Crédit"] == "5001,00"
    assert rows[-1]["Nature"].startswith("Frais payés par les clients")


async def test_the_statement_on_screen_by_environment_and_its_refusals(settings: Settings, cli: Cli) -> None:
    history, balance, _ = await _history_and_balance(settings)
    shown = cli("ledger", "statement", history.merchant.id, "XOF")
    assert shown.code == 0
    assert f"Closing balance on {shown.out.split('Closing balance on ')[1][:19]} UTC: {balance}" in shown.out
    assert "9 movements: debits " in shown.out
    test = json.loads(cli("ledger", "statement", history.merchant.id, "XOF", "--env", "test", "--json").out)
    assert [each["amount"] for each in test["movements"]] == [700, -700]
    empty = json.loads(cli("ledger", "statement", history.merchant.id, "USD", "--json").out)
    assert (empty["opening"], empty["closing"], empty["movements"]) == (0, 0, [])
    assert cli("ledger", "statement", 999, "XOF").refusal == "There is no merchant with the id 999."
    assert "exclude" in cli("ledger", "statement", 1, "XOF", "--csv", "--json").misuse
    assert cli("ledger", "statement", 1, "XOF", "--from", "2026-02-01", "--to", "2026-01-01").code == 1
    assert "ISO-8601" in cli("ledger", "statement", 1, "XOF", "--from", "soon").misuse
