"""`guichet doctor`: what a person must look at, on one screen."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import typer

from guichet.bootstrap import Service
from guichet.cli.support import Json, people, print_json, run
from guichet.clock import DAY, HOUR, MINUTE, Instant, iso
from guichet.db.engine import Database
from guichet.ledger.audit import last_audit
from guichet.server import health_checks as checkup

#: Why live payments fail that is no customer's doing (keys of `operators.base.REFUSAL_REASONS`).
_OF_THE_ROUTE: Final = ("configuration", "not_connected", "operator_unavailable")
#: An audit older than this is asked for again.
_AUDIT_EVERY: Final = 7 * DAY


@dataclass(frozen=True, slots=True)
class Finding:
    """`sentences`: what is wrong, one a line; none when all is well."""

    name: str
    sentences: Sequence[str]
    rows: list[dict[str, object]] = field(default_factory=list)


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: `guichet doctor --json`")(doctor)


def doctor(as_json: Json = False) -> None:
    """Show what a person must look at: stuck payments, queues, routes, endpoints, keys, incidents, the audit.

    Exit code 1 when there is something.
    """

    async def work(opened: Service) -> list[Finding]:
        db, now = opened.ctx.db, opened.ctx.clock.now()
        return [
            await _stuck(db, now),
            await _queues(db, now),
            await _routes(db, now),
            await _endpoints(db, now),
            await _keys(db, now),
            await _incidents(db, now),
            await _seals(db, now),
            await _audit(db, now),
        ]

    findings = run(work)
    healthy = not any(finding.sentences for finding in findings)
    if as_json:
        checks = {
            each.name: {"ok": not each.sentences, "problems": list(each.sentences), "rows": each.rows}
            for each in findings
        }
        print_json({"healthy": healthy, "checks": checks})
    else:
        for finding in findings:
            people.print(
                f"{'✗' if finding.sentences else '✓'} {finding.name}", style="red" if finding.sentences else None
            )
            for sentence in finding.sentences:
                people.print(f"    {sentence}", soft_wrap=True)
    if not healthy:
        raise typer.Exit(1)


async def _stuck(db: Database, now: Instant) -> Finding:
    found = await checkup.stuck(db, now)
    return Finding(
        "stuck payments and refunds",
        [
            f"{each.count} live {each.noun}s by {each.operator}, pending for up to {_age(each.oldest, now)}"
            for each in found
        ],
        [
            {"what": each.noun, "operator": each.operator, "count": each.count, "oldest": iso(each.oldest)}
            for each in found
        ],
    )


async def _queues(db: Database, now: Instant) -> Finding:
    found = await checkup.late(db, now)
    return Finding(
        "queues",
        [f"{each.count} {each.queue} late by up to {_age(each.since, now)}: does a worker run?" for each in found],
        [{"queue": each.queue, "count": each.count, "since": iso(each.since)} for each in found],
    )


async def _routes(db: Database, now: Instant) -> Finding:
    found = await checkup.failing_routes(db, now, _OF_THE_ROUTE)
    return Finding(
        "routes",
        [
            f"{each.failed} live payments by {each.operator} failed over {each.provider_account} in a day through no "
            f"fault of their customers, {each.succeeded} succeeded: `guichet operators check`"
            for each in found
        ],
        [
            {
                "provider_account": each.provider_account,
                "operator": each.operator,
                "failed": each.failed,
                "succeeded": each.succeeded,
            }
            for each in found
        ],
    )


async def _endpoints(db: Database, now: Instant) -> Finding:
    found = await checkup.failing(db, now)
    return Finding(
        "webhook endpoints",
        [
            f"{each.destination} of merchant {each.merchant_id} ({each.env}): {each.abandoned} given up, "
            f"{each.retrying} being tried again, {each.delivered} delivered in a day"
            for each in found
        ],
        [
            {
                "merchant": each.merchant_id,
                "env": each.env,
                "destination": each.destination,
                "abandoned": each.abandoned,
                "retrying": each.retrying,
                "delivered": each.delivered,
            }
            for each in found
        ],
    )


async def _keys(db: Database, now: Instant) -> Finding:
    found = await checkup.expiring(db, now)
    return Finding(
        "API keys",
        [
            f"key {each.key_id} ({each.env}) of merchant {each.merchant_id}, {each.merchant}, expires in "
            f"{_age(now, each.expires_at)}"
            for each in found
        ],
        [
            {"key": each.key_id, "merchant": each.merchant_id, "env": each.env, "expires_at": iso(each.expires_at)}
            for each in found
        ],
    )


async def _incidents(db: Database, now: Instant) -> Finding:
    found = await checkup.open_incidents(db)
    unmatched_callbacks = await checkup.unmatched_callbacks_since(db, now)
    sentences = [
        f"{count} {kind}, the oldest since {_age(since, now)}: `guichet incidents`" for kind, count, since in found
    ]
    if unmatched_callbacks:
        sentences.append(f"{unmatched_callbacks} notifications of a day match nothing: `guichet incidents`")
    rows: list[dict[str, object]] = [
        {"kind": kind, "count": count, "since": iso(since)} for kind, count, since in found
    ]
    return Finding(
        "incidents",
        sentences,
        rows + ([{"kind": "stray callbacks", "count": unmatched_callbacks}] if unmatched_callbacks else []),
    )


async def _seals(db: Database, now: Instant) -> Finding:
    found = await checkup.unsealed(db, now)
    if found is None:
        return Finding("ledger seals", [])
    posting, at = found
    sentence = f"posting {posting} waits since {_age(at, now)} to be sealed: does a worker run?"
    return Finding("ledger seals", [sentence], [{"posting": posting, "created_at": iso(at)}])


async def _audit(db: Database, now: Instant) -> Finding:
    last = await last_audit(db)
    if last is None:
        return Finding("ledger audit", ["there was none yet: `guichet ledger audit`"])
    row = {"finished_at": iso(last.finished_at), "clean": last.fault is None, "fault": last.fault, "head": last.head}
    if last.fault is not None:
        return Finding("ledger audit", [f"{_age(last.finished_at, now)} ago it found: {last.fault}"], [row])
    if last.finished_at < now - _AUDIT_EVERY:
        return Finding("ledger audit", [f"the last one is {_age(last.finished_at, now)} old"], [row])
    return Finding("ledger audit", [], [row])


def _age(since: Instant, now: Instant) -> str:
    """The largest unit that says enough."""
    for unit, name in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute")):
        if (count := (now - since) // unit) >= 1:
            return f"{count} {name}{'s' if count > 1 else ''}"
    return "a moment"
