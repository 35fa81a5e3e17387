"""Who owns the database cuts the end off the books, or rewrites them whole: what left the machine contradicts it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from guichet.audit_log import entries
from guichet.domain.audit_log import Act, Actor
from guichet.domain.messages import decode
from guichet.settings import Settings
from tests.cli.conftest import Cli, CommandResult
from tests.ledger.ledger_history import RawSql, yesterday

#: A day old, as `yesterday` is.
CUT = "The hash chain ends at posting {kept}, but {origin} covered it up to posting {cut}: "


async def books(settings: Settings) -> None:
    """Two links: the second one covers one payment of 5 000 XOF. Both chains' heads were published after it."""
    async with yesterday(settings) as service:
        merchant = await service.merchant("Shop")
        await merchant.live.pay("0000", external_id="first")
        await service.run_worker(20)
        await service.run_worker(200)
        async with service.ctx.db.transaction() as tx:
            for subject in ("1", "2"):
                act = Act(Actor("Awa", "awa"), "key.revoked", "key", subject)
                await entries.record(tx, act, service.clock.now())
        await merchant.live.pay("0000", external_id="second")
        await service.run_worker(20)
        await service.run_worker(200)
        await service.run_worker(400)


async def cut_the_end_off(raw_sql: RawSql) -> dict[str, Any]:
    """The second payment never succeeded: its postings, its link and its money are gone, consistently."""
    [(kept, digest)] = await raw_sql.run("SELECT last_posting_id, digest FROM ledger_hash_chain WHERE id = 1")
    [(cut,)] = await raw_sql.run("SELECT max(last_posting_id) FROM ledger_hash_chain")
    assert kept < cut
    for statement in (
        "DELETE FROM ledger_hash_chain WHERE id > 1",
        f"DELETE FROM postings WHERE id > {kept}",
        "UPDATE payments SET status = 'failed' WHERE external_id = 'second'",
        "DELETE FROM wallet_entries",
        "UPDATE wallets SET balance = 500000 WHERE env = 'live' AND currency = 'XOF'",
    ):
        await raw_sql.run(statement)
    return {"kept": kept, "cut": cut, "digest": digest}


async def forget(raw_sql: RawSql, kept: int, digest: str) -> None:
    """Everything that the database remembers of its heads is rewritten too."""
    await raw_sql.run(f"UPDATE ledger_audits SET head = '{digest}', head_posting_id = {kept}")
    await raw_sql.run(f"UPDATE published_heads SET digest = '{digest}', posting_id = {kept}, link = 1")


def fault(said: CommandResult) -> str:
    assert said.code == 1, said
    assert "Traceback" not in said.err
    return said.err.splitlines()[-1].removeprefix("✗ ")


def published(said: CommandResult) -> str:
    """The lines of the log that are heads."""
    return "".join(f"{line}\n" for line in said.err.splitlines() if '"ledger.head"' in line)


async def test_an_audit_remembers_where_the_chain_ended(settings: Settings, cli: Cli, raw_sql: RawSql) -> None:
    await books(settings)
    await raw_sql.run("UPDATE published_heads SET published_at = NULL")
    assert cli("ledger", "audit", "--json").json["clean"] is True
    await raw_sql.run("UPDATE published_heads SET published_at = NULL")
    cut = await cut_the_end_off(raw_sql)
    [(at,)] = await raw_sql.run("SELECT head_posting_id FROM ledger_audits")
    assert at == cut["cut"]
    sentence = fault(cli("ledger", "audit"))
    assert sentence.startswith("The hash chain ends at posting {kept}, but the head of the audit of 2".format(**cut))
    assert sentence.endswith(
        "covered it up to posting {cut}: rows are missing at its end, or this is a restored backup.".format(**cut)
    )
    assert cli("ledger", "audit").code == 1, "the fault does not make the books right"


async def test_a_consistent_cut_is_found_by_the_file(settings: Settings, cli: Cli, raw_sql: RawSql) -> None:
    file = settings.home / "heads.jsonl"
    await books(replace(settings, ledger_heads=file))
    assert file.stat().st_mode & 0o777 == 0o600
    cli = cli.having(GUICHET_LEDGER_HEADS=f"file:{file}")
    assert cli("ledger", "audit").code == 0
    cut = await cut_the_end_off(raw_sql)
    await forget(raw_sql, cut["kept"], cut["digest"])
    assert fault(cli("ledger", "audit")).startswith(
        "The hash chain ends at posting {kept}, but the head published at 2".format(**cut)
    )
    [(recorded,)] = await raw_sql.run("SELECT fault FROM ledger_audits ORDER BY id DESC LIMIT 1")
    assert "rows are missing at its end, or this is a restored backup" in str(decode(recorded))


async def test_a_consistent_cut_is_found_by_heads_taken_from_the_log(
    settings: Settings, cli: Cli, raw_sql: RawSql, tmp_path: Path
) -> None:
    await books(settings)
    await raw_sql.run("UPDATE published_heads SET published_at = NULL")
    kept = tmp_path / "kept.jsonl"
    kept.write_text(published(cli("ledger", "audit")))
    assert len(kept.read_text().splitlines()) == 1
    assert cli("ledger", "audit", "--known-heads", kept).code == 0
    cut = await cut_the_end_off(raw_sql)
    await forget(raw_sql, cut["kept"], cut["digest"])
    assert cli("ledger", "audit").code == 0, "nothing inside the database says so"
    assert "the head published at 2" in fault(cli("ledger", "audit", "--known-heads", kept))


async def test_books_rewritten_as_a_whole_are_found_by_the_file(settings: Settings, cli: Cli, raw_sql: RawSql) -> None:
    file = settings.home / "heads.jsonl"
    await books(replace(settings, ledger_heads=file))
    first = json.loads(file.read_text().splitlines()[0])
    await raw_sql.run("DELETE FROM ledger_hash_chain")
    await raw_sql.run("UPDATE postings SET created_at = created_at + 1")
    async with yesterday(settings) as service:
        await service.run_worker(600)
    [(kept, digest)] = await raw_sql.run(
        "SELECT last_posting_id, digest FROM ledger_hash_chain ORDER BY last_posting_id DESC LIMIT 1"
    )
    await forget(raw_sql, kept, digest)
    assert cli("ledger", "audit").code == 0
    assert fault(cli.having(GUICHET_LEDGER_HEADS=f"file:{file}")("ledger", "audit")) == (
        f"The hash chain does not contain the head published at {first['at']}, digest {first['digest']} at posting "
        f"{first['posting_id']}: it was cut short or rewritten."
    )


async def test_acts_cut_off_the_audit_log_are_found(settings: Settings, cli: Cli, raw_sql: RawSql) -> None:
    file = settings.home / "heads.jsonl"
    await books(replace(settings, ledger_heads=file))
    assert cli("audit-log", "verify", "--known-heads", file).code == 0
    [(digest,)] = await raw_sql.run("SELECT digest FROM audit_log WHERE number = 1")
    triggers = ("DROP TRIGGER refuse_audit_log_delete",)
    for statement in triggers if settings.embedded else ("DROP TRIGGER refuse_audit_log_change ON audit_log",):
        await raw_sql.run(statement)
    await raw_sql.run("DELETE FROM audit_log WHERE number = 2")
    await raw_sql.run(f"UPDATE audit_log_head SET number = 1, digest = '{digest}'")
    ends = "The audit log ends at entry 1, but the head published at 2"
    assert fault(cli("audit-log", "verify")).startswith(ends), "the last publication is in the database"
    await raw_sql.run(f"UPDATE published_heads SET act = 1, act_digest = '{digest}'")
    assert cli("audit-log", "verify").code == 0
    assert fault(cli("audit-log", "verify", "--known-heads", file)).startswith(ends)
    assert fault(cli.having(GUICHET_LEDGER_HEADS=f"file:{file}")("audit-log", "verify")).startswith(ends)


async def test_heads_that_cannot_be_compared_fail_the_audit(settings: Settings, cli: Cli, raw_sql: RawSql) -> None:
    file = settings.home / "heads.jsonl"
    await books(replace(settings, ledger_heads=file))
    reading = cli.having(GUICHET_LEDGER_HEADS=f"file:{file}")
    heads = file.read_text()
    file.write_text(heads + '{"event":"ledger.head","at":')
    assert f"heads.jsonl, line {len(heads.splitlines()) + 1} is not a head" in fault(reading("ledger", "audit"))
    file.write_text(heads.replace('"digest":"', '"digest":"x', 1))
    assert "heads.jsonl, line 1 is not a head" in fault(reading("audit-log", "verify"))
    file.unlink()
    assert "No such file" in fault(reading("ledger", "audit"))
    file.write_text(heads)
    assert reading("ledger", "audit").code == 0
    await raw_sql.run("UPDATE published_heads SET database_id = 'another'")
    assert "and this is another: each database needs a file of its own" in fault(reading("ledger", "audit"))
