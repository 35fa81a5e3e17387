"""The audit log: what people did, newest first, and whether anybody changed it since."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts.rights import StaffMember
from guichet.audit_log import entries as audit_log
from guichet.audit_log.entries import CONSOLE, Entry, Filter
from guichet.audit_log.verification import Verification, verify
from guichet.chain_heads import last_published
from guichet.console.activity_page import NOT_SHOWN, SHOWN
from guichet.console.admin.fields import before
from guichet.console.facts import changed_facts
from guichet.console.sections import StaffPage
from guichet.console.visit import Visit
from guichet.domain.chain_faults import ChainFault
from guichet.domain.chain_heads import KnownHead, KnownHeads

#: Entries that a page shows, and that the page checks on request: 20 s. `guichet audit-log verify` checks any number.
_PAGE: Final = 50
_MOST_VERIFIED: Final = 500_000
_MAX_FIELD: Final = 254
#: Every act of the code.
ACTS: Final = frozenset({*SHOWN, *NOT_SHOWN})


async def show(visit: Visit, acting: StaffMember) -> Response:
    return await _page(visit, None)


async def check(visit: Visit, acting: StaffMember) -> Response:
    """Reads the whole log and compares it with the head that was published last. It changes nothing, so the answer is
    the page itself. Files of published heads are for `guichet audit-log verify`."""
    await visit.form()
    ctx = visit.console.ctx
    acting.require("audit_log.view", ctx.clock.now())
    number, _ = await audit_log.head(ctx.db)
    if number > _MOST_VERIFIED:
        return await _page(visit, None)
    last = await last_published(ctx.db)
    published = () if last.act_digest is None else (KnownHead(last.act_digest, last.act, ChainFault.LAST_HEAD()),)
    return await _page(visit, await verify(ctx.db, KnownHeads(acts=published)))


async def _page(visit: Visit, verified: Verification | None) -> Response:
    """Reading the log is no entry of it: each page would make the next one longer."""
    db = visit.console.ctx.db
    # No entry holds a NUL, and PostgreSQL takes none.
    asked = {name: visit.request.query_params.get(name, "").replace("\0", "") for name in Filter._fields}
    typed = {name: text.strip()[:_MAX_FIELD] for name, text in asked.items()}
    found = await audit_log.filtered(db, Filter(**typed), before(visit), _PAGE + 1)
    shown = found[:_PAGE]
    older = visit.at_admin("/audit-log", **typed, before=str(shown[-1].number)) if len(found) > _PAGE else None
    number, _ = await audit_log.head(db)
    view: dict[str, Any] = {
        "entries": [_described(visit, entry) for entry in shown],
        "typed": typed,
        "acts": _acts(visit, typed["action"]),
        "older": older,
        "number": number,
        "too_long": number > _MOST_VERIFIED,
        "verified": verified,
        "published": await last_published(db),
    }
    return visit.show("admin/audit_log.html", **view)


def _acts(visit: Visit, chosen: str) -> list[tuple[str, str]]:
    """All acts by their words, and one that only another version knows if it was asked for."""
    known = sorted(((act, str(visit.text(f"activity.act.{act}"))) for act in ACTS), key=lambda each: each[1])
    other = [(chosen, chosen)] if chosen and chosen not in ACTS else []
    return [("", visit.text("activity.every_act")), *known, *other]


def _described(visit: Visit, entry: Entry) -> dict[str, object]:
    """In the reader's words; what the command line prints, with which whoever audits compares it, is below."""
    who = entry.actor if entry.os_user in (entry.actor, CONSOLE) else f"{entry.actor} ({entry.os_user})"
    in_team = entry.merchant_id is not None
    return {
        "number": entry.number,
        "at": visit.date_time(entry.at),
        "who": who,
        "actor": entry.actor,
        "act": visit.word("activity.act.", entry.action),
        "action": entry.action,
        "subject_type": visit.word("act_subject.", entry.subject_type),
        "subject": entry.subject,
        "subject_text": _subject(visit, entry),
        "merchant_id": entry.merchant_id,
        "reason": entry.reason,
        "facts": changed_facts(visit, entry.subject_type, entry.before, entry.after, in_team=in_team),
        "changes": " → ".join(facts for facts in (entry.before, entry.after) if facts != "{}"),
    }


def _subject(visit: Visit, entry: Entry) -> str:
    """A reference or a number; reads of lists say which list, those of incidents by their kind."""
    named = visit.renderer.has(f"act_named.{entry.subject}")
    return visit.word("act_named." if named else "operations.kind.", entry.subject)


PAGES: Final = (StaffPage("/audit-log", "audit_log.view", show, check, menu="audit_log"),)
