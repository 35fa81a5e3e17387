"""The audit log: what people did, newest first, and whether anybody changed it since."""

from functools import partial
from typing import Annotated, Final

from starlette.responses import Response

from guichet.audit_log import entries as audit_log
from guichet.audit_log.entries import Entry, Filter, Verification, verify
from guichet.chain_heads import Published, last_published
from guichet.console.activity_page import NOT_SHOWN, SHOWN
from guichet.console.facts import changed_facts
from guichet.console.page_request import StaffRequest
from guichet.domain.audit_log import CONSOLE
from guichet.domain.chain_heads import ChainFault, KnownHead, KnownHeads
from guichet.domain.ids import MerchantId
from guichet.merchants import repository as merchants
from guichet.pages.fields import text
from guichet.pages.lists import ABOVE_ALL, ById, ListPage, Pager
from guichet.pages.views import View

#: Entries that a page shows, and that the page checks on request: 20 s. `guichet audit-log verify` checks any number.
_PAGE: Final = 50
_MOST_VERIFIED: Final = 500_000
_MAX_FIELD: Final = 254
#: Every act of the code.
ACTS: Final = frozenset({*SHOWN, *NOT_SHOWN})
#: Somebody looked and changed nothing: of these there are many, so the list shows them to who asks for them.
READS: Final = frozenset(
    {
        "approvals.listed",
        "delivery.viewed",
        "document.read",
        "incidents.listed",
        "merchant.documents_listed",
        "merchant.notes_read",
        "merchant.read",
        "payment.searched",
        "payment.viewed",
        "staff.listed",
        "user.read",
        "user.searched",
        "wallet.viewed",
    }
)
#: The filter by acts that shows reads too. No act is called so.
_EVERYTHING: Final = "all"


class Query(ById):
    actor: Annotated[str, text(_MAX_FIELD)] = ""
    action: Annotated[str, text(_MAX_FIELD)] = ""
    subject: Annotated[str, text(_MAX_FIELD)] = ""


class EntryRow(View, frozen=True):
    """In the reader's words, beside what the command line prints, with which an auditor compares it."""

    entry: Entry
    who: str
    subject_text: str
    merchant: str | None
    facts: list[tuple[str, str]]
    changes: str


class AuditLogView(View, frozen=True):
    """`number`: of the last entry; `verified`: what the check found that was asked for."""

    query: Query
    entries: list[EntryRow]
    pager: Pager
    acts: list[tuple[str, str]]
    number: int
    too_long: bool
    verified: Verification | None
    published: Published


async def show(request: StaffRequest, verified: Verification | None = None) -> Response:
    """Reading the log is no entry of it: each page would make the next one longer."""
    query = Query.read(request.query)
    filters = query.model_dump(exclude={"before", "after"})
    action = "" if query.action == _EVERYTHING else query.action
    act_filter = Filter(query.actor, action, query.subject, () if query.action else tuple(sorted(READS)))
    before = query.cursor.before or ABOVE_ALL
    page = ListPage.cut(await audit_log.filtered(request.db, act_filter, before, _PAGE + 1), _PAGE, query.cursor)
    names = await merchants.names(request.db, {row.merchant_id for row in page.rows if row.merchant_id is not None})
    number, _ = await audit_log.head(request.db)
    view = AuditLogView(
        query=query,
        entries=[_row(request, entry, names) for entry in page.rows],
        pager=page.pager(lambda entry: entry.number, partial(request.admin_url, "/audit-log", **filters)).older_only(),
        acts=_acts(request, query.action),
        number=number,
        too_long=number > _MOST_VERIFIED,
        verified=verified,
        published=await last_published(request.db),
    )
    return request.page("admin/audit_log.html", view)


async def check(request: StaffRequest) -> Response:
    """Reads the whole log and compares it with the head that was published last. It changes nothing, so the answer is
    the page itself. Files of published heads are for `guichet audit-log verify`."""
    await request.fields()
    request.require("audit_log.view")
    number, _ = await audit_log.head(request.db)
    if number > _MOST_VERIFIED:
        return await show(request)
    last = await last_published(request.db)
    published = () if last.act_digest is None else (KnownHead(last.act_digest, last.act, ChainFault.LAST_HEAD()),)
    return await show(request, await verify(request.db, KnownHeads(acts=published)))


def _acts(request: StaffRequest, chosen: str) -> list[tuple[str, str]]:
    """All acts by their words, and one that only another version knows if it was asked for."""
    known = sorted(((act, str(request.text(f"activity.act.{act}"))) for act in ACTS), key=lambda pair: pair[1])
    other = [(chosen, chosen)] if chosen and chosen not in {*ACTS, _EVERYTHING} else []
    all_of_them = [("", request.text("admin_log.no_reads")), (_EVERYTHING, request.text("admin_log.with_reads"))]
    return [*all_of_them, *known, *other]


def _row(request: StaffRequest, entry: Entry, names: dict[MerchantId, str]) -> EntryRow:
    who = entry.actor if entry.os_user in (entry.actor, CONSOLE) else f"{entry.actor} ({entry.os_user})"
    in_team = entry.merchant_id is not None
    return EntryRow(
        entry=entry,
        who=who,
        subject_text=_subject(request, entry),
        merchant=names.get(entry.merchant_id) if entry.merchant_id is not None else None,
        facts=changed_facts(request, entry.subject_type, entry.before, entry.after, in_team=in_team),
        changes=" → ".join(facts for facts in (entry.before, entry.after) if facts != "{}"),
    )


def _subject(request: StaffRequest, entry: Entry) -> str:
    """A reference or a number; reads of lists say which list, those of incidents by their kind."""
    if entry.subject_type == "mode":
        return request.operator_name(entry.subject)
    named = request.renderer.has(f"act_named.{entry.subject}")
    return request.word("act_named." if named else "operations.kind.", entry.subject)
