"""`guichet reconcile`: a statement made by hand, unreadable files, and the history of the simulated provider."""

import asyncio
import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from guichet.clock import DAY, SystemClock, earlier, iso
from guichet.providers.provider_types import PROVIDER_TYPES
from guichet.providers.shared.client import ProviderAccount
from guichet.settings import Settings
from tests.cli.conftest import ROOT, Cli, CommandResult, cli_for
from tests.ledger.ledger_history import LedgerHistory, RawSql, live, operator, yesterday
from tests.providers.simulated_providers import Setup, SimulatedProviders, open_simulated_providers

OPERATORS = """
[accounts.op]
provider = "feexpay"
base_url = "http://127.0.0.1:9/simulator/feexpay"
api_key = "k"
shop = "s"

[routes]
mtn = ["op"]
moov = ["op"]
"""


def _with_operators(cli: Cli, text: str = OPERATORS) -> Cli:
    path = cli.folder / "operators.toml"
    path.write_text(text)
    return cli.having(GUICHET_PROVIDERS_FILE=str(path))


def _statement(cli: Cli, text: str) -> Path:
    path = cli.folder / "statement.csv"
    path.write_text(text, encoding="utf-8")
    return path


def _taken(payment: Any) -> int:
    """The requested amount: the total, in whole francs."""
    return int(payment["total_amount"] + 0.5)


async def _history(settings: Settings) -> LedgerHistory:
    async with yesterday(settings, accounts={"op": operator()}, routes={"mtn": ["op"], "moov": ["op"]}) as service:
        return await live(service)


def _report_of(done: CommandResult, code: int) -> Any:
    assert done.code == code, done
    return json.loads(done.out)


async def test_a_handmade_statement_is_reconciled(settings: Settings, cli: Cli) -> None:
    history = await _history(settings)
    cli = _with_operators(cli)
    everything = _report_of(cli("reconcile", "feexpay", _statement(cli, "reference,amount\n"), "--json"), 1)
    assert everything["counts"] == {"matched": 0, "missing here": 0, "missing there": 9, "different amount": 0}
    ours = [(each["ours"], each["type"]) for each in everything["differences"]]
    whole = "reference;type;amount;currency;status\n" + "".join(
        f"{each['reference']};{kind};{each['amount']};{each['currency']};SUCCESSFUL\n" for each, kind in ours
    )
    clean = cli("reconcile", "feexpay", _statement(cli, whole))
    assert clean.code == 0, clean
    assert "9 matched, 0 missing here, 0 missing there, 0 different amount." in clean.out

    lines = whole.splitlines(keepends=True)
    by_reference = {each["reference"]: number for number, (each, _) in enumerate(ours, 1)}
    paid, refunded = by_reference[history.paid["reference"]], by_reference[history.refunded["reference"]]
    waiting = by_reference[history.waiting["reference"]]
    lines[paid] = lines[paid].replace(f";{_taken(history.paid)};", f";{_taken(history.paid) - 1};")
    lines[refunded] = lines[refunded].upper() + lines[refunded]
    lines[waiting] = lines[waiting].replace("SUCCESSFUL", "FAILED")
    failed = await _references(settings, "failed")
    lines += [
        f"nobody-knows;payment;100;XOF;success\n{failed};payment;5088;XOF;success\nnothing;payment;1;XOF;failed\n"
    ]
    out = cli.folder / "out.csv"
    report = _report_of(cli("reconcile", "op", _statement(cli, "".join(lines)), "--csv", out, "--json"), 1)
    assert report["counts"] == {"matched": 7, "missing here": 3, "missing there": 1, "different amount": 1}
    found = {(each["result"], each["note"], (each["ours"] or {}).get("reference")) for each in report["differences"]}
    assert found == {
        ("different amount", "", history.paid["reference"]),
        ("missing here", "a second time", history.refunded["reference"]),
        ("missing here", "failed here", failed),
        ("missing here", "unknown here", None),
        ("missing there", "failed there", history.waiting["reference"]),
    }
    rows = list(csv.DictReader(out.read_text(encoding="utf-8-sig").splitlines(), delimiter=";"))
    assert len(rows) == 12
    assert {row["result"] for row in rows} == set(report["counts"])
    shown = cli("reconcile", "op", cli.folder / "statement.csv")
    assert shown.code == 1
    assert "a second time" in shown.out


async def _references(settings: Settings, status: str) -> Any:
    [(reference,)] = await RawSql(settings).run(
        f"SELECT reference FROM payments WHERE status = '{status}' AND env = 'live'"
    )
    return str(reference)


async def test_reconciliation_understands_periods_kinds_and_columns(settings: Settings, cli: Cli) -> None:
    history = await _history(settings)
    cli = _with_operators(cli)
    long_ago = _statement(cli, f"reference,amount\n{history.paid['reference']},{_taken(history.paid)}\n")
    report = _report_of(cli("reconcile", "op", long_ago, "--from", "2020-01-01", "--to", "2020-01-31", "--json"), 0)
    assert report["counts"]["matched"] == 1, "looked up by its reference, wherever it is"
    dated = _statement(
        cli,
        "Ref;Montant;Date;Sens\n"
        f"{history.paid['reference']};5 089,00;15/01/2020 10:00;Encaissement\nx;9;15/01/2020;Frais\n",
    )
    columns = (
        "--column",
        "reference=Ref",
        "--column",
        "amount=Montant",
        "--column",
        "type=Sens",
        "--word",
        "Frais=ignore",
    )
    report = _report_of(cli("reconcile", "op", dated, *columns, "--json"), 0)
    assert (report["from"], report["to"]) == ("2020-01-15T10:00:00.000000Z", "2020-01-15T10:00:00.000000Z")
    assert report["ignored"] == 1
    report = _report_of(cli("reconcile", "op", _statement(cli, "reference,amount\n"), "--only", "refund", "--json"), 1)
    assert report["counts"]["missing there"] == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "line 1: no column for reference"),
        ("reference,total\nx,1\n", "line 1: no column for amount among reference, total"),
        ("reference,amount\nx\n", "line 2: 1 columns where the header has 2"),
        ("reference,amount\na,1\n\nx,5,\n", "line 4: 3 columns"),
        ("reference,amount\nx,cinq\n", "line 2: the amount 'cinq' cannot be read"),
        ("reference;amount\nx;5,000\n", "line 2: the amount '5,000' cannot be read"),
        (f"reference,amount\nx,{'9' * 5000}\n", "line 2: the amount '999"),
        ("reference,amount\nx\0y,5\n", "line 2: it holds a NUL byte"),
        ("reference,amount\n,5\n", "line 2: it has no reference"),
        ("reference,amount\nx,\n", "line 2: it has no amount"),
        ("reference,amount,status\nx,5,done\n", "line 2: the status 'done' is unknown"),
        ("reference,amount,type\nx,5,paid\n", "line 2: the type 'paid' is unknown"),
        ("reference,amount,currency\nx,5,CFA\n", "line 2: CFA is not one of XOF"),
        ("reference,amount,date\nx,5,hier\n", "line 2: the date 'hier' cannot be read"),
        ('reference,amount\n"x,5\n', "line 2: unexpected end of data"),
    ],
)
def test_an_unreadable_statement_is_refused_by_name(sqlite_settings: Settings, text: str, sentence: str) -> None:
    cli = _with_operators(cli_for(sqlite_settings))
    done = cli("reconcile", "feexpay", _statement(cli, text))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("✗ statement.csv, ")
    assert sentence in done.err


def test_wrong_arguments_are_refused(sqlite_settings: Settings) -> None:
    cli = _with_operators(cli_for(sqlite_settings))
    latin = cli.folder / "latin.csv"
    latin.write_bytes("reference;amount\nCaf\xe9;5\n".encode("latin-1"))
    done = cli("reconcile", "feexpay", latin)
    assert done.code == 2
    assert "latin.csv, line 2: this is not UTF-8" in done.err
    assert "there is no account with the provider wave" in cli("reconcile", "wave", latin).misuse
    assert "either a file or --fetch" in cli("reconcile", "feexpay").misuse
    assert "either a file or --fetch" in cli("reconcile", "feexpay", latin, "--fetch").misuse
    assert "--fetch needs --from" in cli("reconcile", "feexpay", "--fetch").err
    unreachable = cli("reconcile", "feexpay", "--fetch", "--from", "2026-01-01", "--to", "2026-01-02")
    assert unreachable.code == 2
    assert "The history of op cannot be read" in unreachable.err


FEEXPAY = Setup(
    {"fx": ProviderAccount("fx", "feexpay", "{sim}/feexpay", {"api_key": "k", "shop": "s"})}, {"mtn": ["fx"]}
)


async def test_the_history_of_the_provider_is_fetched_and_reconciled(settings: Settings, cli: Cli) -> None:
    """Over real HTTP: the command reads from the simulator's history what the service did there."""
    async with open_simulated_providers(settings, FEEXPAY) as simulated:
        fetch = _fetching(cli, simulated)
        paid = await simulated.merchant.live.pay("9001", phone_number="2290161009001")
        refunded = await simulated.merchant.live.pay("9001", phone_number="2290161009001")
        lying = await simulated.merchant.live.pay("9019", phone_number="2290161009019")
        await simulated.merchant.live.pay("9004", phone_number="2290161009004")
        for _ in range(4):
            await simulated.turn(10)
        answer = await simulated.merchant.live.post(f"/payments/{refunded['reference']}/refund")
        assert answer.status == 201
        for _ in range(3):
            await simulated.turn(10)
        assert (await simulated.merchant.live.get(f"/payments/{refunded['reference']}")).data["status"] == "refunded"
        done = await asyncio.to_thread(fetch)
        report = _report_of(done, 1)
        assert report["counts"] == {"matched": 3, "missing here": 1, "missing there": 0, "different amount": 0}
        [difference] = report["differences"]
        assert (difference["ours"]["reference"], difference["note"]) == (lying["reference"], "pending here")
        assert difference["theirs"]["amount"] == difference["ours"]["amount"] - 1
        await asyncio.to_thread(fetch, "--csv", cli.folder / "all.csv")
        written = (cli.folder / "all.csv").read_text(encoding="utf-8-sig")
        assert written.count("matched") == 3
        assert paid["reference"] in written


def _fetching(cli: Cli, simulated: SimulatedProviders) -> Any:
    text = OPERATORS.replace("http://127.0.0.1:9/simulator", simulated.simulator).replace("accounts.op", "accounts.fx")
    wired = _with_operators(cli, text.replace('["op"]', '["fx"]'))

    yesterday_day = iso(earlier(SystemClock().now(), DAY))[:10]

    def fetch(*more: object) -> CommandResult:
        return wired("reconcile", "feexpay", "--fetch", "--from", yesterday_day, *more, "--json")

    return fetch


def test_the_guide_names_the_known_columns() -> None:
    guide = (ROOT / "docs" / "admin-guide.md").read_text(encoding="utf-8")
    rows = guide.split("<!-- table: columns -->")[1].split("\n\n")[1].splitlines()
    documented = {}
    for row in rows[2:]:
        family, *cells = [cell.strip() for cell in row.strip("|").split("|")]
        fields = zip(("reference", "amount", "status", "date"), cells, strict=True)
        documented[family.strip("`")] = {field: tuple(re.findall(r"`([^`]+)`", cell)) for field, cell in fields if cell}
    assert documented == {name: declared.statement for name, declared in PROVIDER_TYPES.items() if declared.statement}
