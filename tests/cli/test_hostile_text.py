"""What merchants, customers, providers and callbacks wrote reaches nobody's terminal as a control character."""

import json
import unicodedata
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Table, insert, text, update

from guichet.audit_log import entries
from guichet.clock import DAY, MINUTE, Instant, SystemClock, earlier
from guichet.db import tables as t
from guichet.domain.audit_log import Act, Actor
from guichet.domain.messages import encode, verbatim
from guichet.settings import Settings
from tests.cli.conftest import ROOT, Cli, CommandResult, cli_for
from tests.db.rows import AVAILABILITY, DELIVERY, DISPUTE, INCIDENT, LATE_RESULT, RUN
from tests.ledger.ledger_history import live, yesterday
from tests.patience import PATIENCE

#: Clears the screen, hides a link (OSC 8), fills the clipboard (OSC 52), rings, goes back, opens a colour with a C1
#: control, deletes, reverses the text (bidi), breaks the line, names a language by tags, and is markup.
HOSTILE: Final = (
    "\x1b[2J\x1b]8;;http://evil\x07link\x1b]8;;\x07\x1b]52;c;ZXZpbA==\x07\r\n\b\x9b31m\x7f\u202e001\u2066\u2028\U000e0001"
    "[red]x[/red][link=http://evil]y[/link]:bomb:"
)
PROVIDERS: Final = """
[accounts.op]
provider = "feexpay"
base_url = "http://127.0.0.1:9/simulator/feexpay"
api_key = "k"
shop = "s"

[routes]
mtn = ["op"]
moov = ["op"]
"""
#: Texts that others choose, by table.
FIELDS: Final = {
    t.merchants: ("name",),
    t.payments: ("external_id", "description", "firstname", "lastname", "email", "address", "country", "metadata"),
    t.refunds: ("reason", "provider_reference"),
    t.incidents: ("detail",),
    t.unmatched_callbacks: ("path", "body", "provider_account"),
    t.disputes: ("reason", "provider_reference"),
    t.late_results: ("provider_account",),
    t.operator_availability: ("reason",),
    t.provider_balance_reads: ("error",),
    t.provider_balances: ("wallet",),
    t.reconciliation_runs: ("error",),
    t.webhook_deliveries: ("destination",),
}
#: Those that quote others.
MESSAGES: Final = (
    (t.incidents, "detail"),
    (t.operator_availability, "reason"),
    (t.provider_balance_reads, "error"),
    (t.reconciliation_runs, "error"),
)
#: Every command that shows what is stored; each runs as a table and with --json.
COMMANDS: Final = (
    ("merchant", "list"),
    ("key", "list", "1"),
    ("wallet", "show", "1"),
    ("mode", "list"),
    ("mode", "list", "--merchant", "1"),
    ("ledger", "statement", "1", "XOF"),
    ("ledger", "audit"),
    ("ledger", "margin"),
    ("reconcile", "--runs"),
    ("reconcile", "feexpay", "statement.csv"),
    ("providers", "check"),
    ("providers", "balances"),
    ("incidents",),
    ("late-money", "list"),
    ("dispute", "list"),
    ("audit-log", "list"),
    ("audit-log", "verify"),
    ("doctor",),
)


@pytest.fixture
async def hostile(settings: Settings, tmp_path: Path) -> Cli:
    """The command on a database in which every text of others is HOSTILE."""
    now = SystemClock().now()
    async with yesterday(settings) as service:
        await live(service)
        await service.run_worker(200)
        db = service.ctx.db
        [(reference,)] = await db.scan(text("SELECT reference FROM payments WHERE id = 1"))
        for table, row in _rows(now, reference):
            await db.write(insert(table).values(**row))
        for table, names in FIELDS.items():
            for name in names:
                longest = getattr(table.c[name].type, "length", None)
                theirs = encode(verbatim(HOSTILE)) if (table, name) in MESSAGES else HOSTILE[:longest]
                await db.write(update(table).values({name: theirs}).where(*_one_row(table)))
        async with db.transaction() as tx:
            act = Act(Actor(HOSTILE, HOSTILE), "x", "payment", HOSTILE, reason=HOSTILE, after={"name": HOSTILE})
            await entries.record(tx, act, now)
    (tmp_path / "providers.toml").write_text(PROVIDERS)
    theirs = HOSTILE.replace("\r\n", "")
    (tmp_path / "statement.csv").write_text(
        f'reference;type;amount;currency;status\n"{theirs}";payment;1;XOF;SUCCESSFUL\n'
    )
    return cli_for(settings).having(GUICHET_PROVIDERS_FILE=str(tmp_path / "providers.toml"))


def _rows(now: Instant, reference: object) -> list[tuple[Table, dict[str, Any]]]:
    """What each listing needs to have something to list."""
    found = {"status": "open", "stage": "found", "amount": 100, "next_poll_at": None}
    balance = {"provider_account": "op", "wallet": "w", "currency": "XOF", "amount": 1, "alert_below": 2}
    compared = {"day": now // DAY * DAY - DAY, "finished_at": now, "differences": 1}
    failed = {"status": "failed", "next_attempt_at": None, "created_at": earlier(now, MINUTE)}
    callback = {"provider_account": "op", "path": "", "body": "", "reason": "no_match", "received_at": now}
    return [
        (t.incidents, {**INCIDENT, "reference": reference}),
        (t.disputes, {**DISPUTE, "payment_reference": reference, "reference": reference}),
        (t.late_results, {**LATE_RESULT, **found, "reference": reference}),
        (t.operator_availability, {**AVAILABILITY, "operator": "wave_sn", "state": "down", "measured": "down"}),
        (t.provider_balance_reads, {"provider_account": "op", "next_read_at": 1}),
        (t.provider_balances, balance),
        (t.reconciliation_runs, {**RUN, **compared}),
        (t.webhook_deliveries, {**DELIVERY, **failed}),
        (t.unmatched_callbacks, callback),
    ]


def _one_row(table: Any) -> list[Any]:
    """`external_id` is unique in a merchant's environment."""
    return [table.c.id == text("(SELECT min(id) FROM payments WHERE env = 'live')")] if table is t.payments else []


def controls(done: CommandResult) -> str:
    """What a terminal would obey, hide or reorder, of both outputs."""
    return "".join(
        each
        for each in done.out + done.err
        if each != "\n" and (unicodedata.category(each)[0] == "C" or unicodedata.category(each) in ("Zl", "Zp"))
    )


async def test_no_listing_obeys_what_others_wrote(hostile: Cli) -> None:
    shown, described = "", ""
    for command in COMMANDS:
        for options in ((), ("--json",)):
            done = hostile(*command, *options)
            assert done.code in (0, 1), done
            assert "Traceback" not in done.err, done
            assert controls(done) == "", (command, options, controls(done))
            if options:
                described += done.out
                json.loads(done.out)
            else:
                shown += done.out
    for sight in ("\\x1b[2J", "\\x9b31m", "\\u202e001", "\\r\\n", "[red]x[/red]"):
        assert sight in shown
    assert json.loads(hostile("merchant", "list", "--json").out)["merchants"][0]["name"] == HOSTILE
    assert "\\u202e001" in described


@pytest.mark.both_databases
async def test_a_statement_for_a_spreadsheet_holds_no_control_character(hostile: Cli) -> None:
    done = hostile("ledger", "statement", "1", "XOF", "--csv")
    assert done.code == 0
    assert "\\x1b[2J" in done.out
    assert set(controls(done)) <= {"\ufeff", "\r"}


def test_a_refusal_repeats_no_control_character(fresh: Cli) -> None:
    refused = fresh.having(GUICHET_HOME=f"/proc/{HOSTILE.replace('/', '')}")("merchant", "list")
    assert refused.code == 1
    assert controls(refused) == ""


async def test_a_log_line_for_a_person_or_a_machine_holds_no_control_character(fresh: Cli) -> None:
    for profile in ("development", "production"):
        code = (
            "from guichet.logs import configure_logs, log\n"
            f"configure_logs('info', machine_readable={profile == 'production'})\n"
            f"hostile = {HOSTILE!r}\n"
            "log.info('request', method='GET', path='/' + hostile, status=404)\n"
            "log.warning('x', raw=hostile, reference=hostile.replace(' ', ''))\n"
            "try:\n    raise ValueError(hostile)\n"
            "except ValueError:\n    log.error('y', exc_info=True)\n"
        )
        done = _python(fresh, code)
        assert done.err.count("evil") > 2
        assert controls(done) == ""


def _python(cli: Cli, code: str) -> CommandResult:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-c", code], env=dict(cli.environ), cwd=ROOT, capture_output=True, check=True, timeout=PATIENCE
    )
    return CommandResult(done.returncode, done.stdout.decode(), done.stderr.decode())
