"""What people did about a merchant: its team by name, the staff as Guichet. The entries come from the audit log; among
them stand the acts of live keys, which are not in it (`merchants/key_acts.py`)."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec
from markupsafe import Markup
from starlette.responses import Response

from guichet.accounts import users
from guichet.audit_log import entries as audit_log
from guichet.audit_log.entries import STAFF, Entry
from guichet.clock import Instant
from guichet.console.page_request import MerchantRequest
from guichet.domain.accounts import UserId
from guichet.domain.merchants import ENVS, Environment, key_label
from guichet.domain.roles import MERCHANT_ROLES, MerchantRight
from guichet.merchants import key_acts
from guichet.merchants.key_acts import KeyAct
from guichet.pages.fields import Lenient, choice, row_id
from guichet.pages.lists import ByTime, ListPage, Pager, Place
from guichet.pages.views import View
from guichet.printable import printable

_PAGE: Final = 50
#: The acts that a merchant sees, each with a text `activity.act.` and its name.
ShownAct = Literal[
    "customer.anonymised",
    "deliveries.resent",
    "delivery.resent",
    "dispute.resolved",
    "document.downloaded",
    "export.downloaded",
    "export.requested",
    "key.created",
    "key.expiry_set",
    "key.revoked",
    "late_money.resolved",
    "link.closed",
    "link.created",
    "merchant.created",
    "merchant.limits_changed",
    "merchant.name_changed",
    "merchant.status_changed",
    "merchant.time_zone_changed",
    "mode.changed",
    "payment.settled",
    "receipts.changed",
    "refund.declined",
    "refund.payee_confirmed",
    "refund.proposed",
    "refund.requested",
    "refund.settled",
    "test_clock.advanced",
    "test_clock.reset",
    "user.invitation_used",
    "user.invitation_withdrawn",
    "user.invited",
    "user.role_changed",
    "wallet.status_changed",
    "webhook_endpoint.changed",
    "webhook_secret.rotated",
    "webhook_secret.shown",
    "webhook_test.sent",
]
SHOWN: Final[tuple[ShownAct, ...]] = get_args(ShownAct)
#: Acts that say how the staff works, or that are about a person and not about a merchant. A test compares both lists
#: with the code: whoever adds an act decides.
NOT_SHOWN: Final = frozenset(
    {
        "account.confirmed",
        "approvals.listed",
        "delivery.viewed",
        "incidents.listed",
        "staff.listed",
        "user.created",
        "user.sign_in_link_used",
        "approval.approved",
        "approval.objected",
        "approval.refused",
        "approval.requested",
        "document.read",
        "document.removed",
        "document.uploaded",
        "incident.closed",
        "ledger.audit_started",
        "merchant.documents_listed",
        "merchant.note_added",
        "merchant.notes_read",
        "merchant.read",
        "payment.searched",
        "payment.viewed",
        "settlement.proposed",
        "staff_job.requested",
        "treasury.ended",
        "treasury.recorded",
        "treasury.stated",
        "user.disabled",
        "user.enabled",
        "user.factor_added",
        "user.factor_reset",
        "user.passkey_added",
        "user.passkey_removed",
        "user.password_changed",
        "user.password_used",
        "user.read",
        "user.recovery_codes_made",
        "user.searched",
        "user.telephone_changed",
        "wallet.viewed",
    }
)
#: What an act is about, where its name says something to the merchant.
_NAMED: Final = ("delivery", "payment", "receipt", "refund", "statement")
_INVITATIONS: Final = frozenset({"user.invited", "user.invitation_withdrawn"})
#: The facts of an act that the page repeats, with the right that each needs. Others may be for the staff only.
_FACTS: Final[dict[str, MerchantRight | None]] = {
    "preview": None,
    "url": "webhooks.view",
    "count": None,
    "delivery": None,
}


#: To filter by: the acts of keys. No address is like it.
_KEYS: Final = "keys"


class Query(ByTime):
    """The place of a row is the number of an entry, and the id of an act of a key that came after it, or 0."""

    before: Lenient[Place] = None
    after: Lenient[Place] = None
    by: str = ""
    act: Lenient[ShownAct] = None


class ActivityRow(View, frozen=True):
    """`details`: what the act was about, as far as the reader may know it."""

    at: Instant
    who: str
    text: Markup
    details: list[str]
    env: Environment | None


class ActivityView(View, frozen=True):
    """`people` and `acts`: pairs of a value and its text, to choose from."""

    query: Query
    people: list[tuple[str, str]]
    acts: list[tuple[str, str]]
    rows: list[ActivityRow]
    pager: Pager


async def show(request: MerchantRequest) -> Response:
    query = Query.read(request.query)
    members = [user for _, user in await users.team(request.db, request.merchant.id)]
    people = {"": request.text("activity.everybody"), **{user.email: user.name for user in members}, STAFF: "Guichet"}
    people[_KEYS] = request.text("activity.keys")
    query = query.model_copy(update={"by": query.by if query.by in people else ""})
    acts = SHOWN if query.act is None else (query.act,)
    page = ListPage.cut(await _rows(request, query, acts), _PAGE, query.cursor)
    entries = [row.entry for row in page.rows if isinstance(row, _PersonsAct)]
    about = {number for entry in entries if (number := _user(entry)) is not None}
    # Who was only invited may be a stranger: the team learns no name before they have joined.
    invited = {_user(entry) for entry in entries if entry.action in _INVITATIONS} - {user.id for user in members}
    names = await users.names(request.db, about - invited)
    address = partial(request.merchant_url, "/activity", None, by=query.by, act=query.act)
    view = ActivityView(
        query=query,
        people=list(people.items()),
        acts=[("", request.text("activity.every_act")), *((act, request.text(f"activity.act.{act}")) for act in SHOWN)],
        rows=[
            _key_row(request, row) if isinstance(row, KeyAct) else _row(request, row.entry, row.name, names)
            for row in page.rows
        ],
        pager=page.pager(lambda row: "{}.{}".format(*_place(row)), address),
    )
    return request.page("activity.html", view)


async def _rows(request: MerchantRequest, query: Query, acts: Sequence[str]) -> list["_PersonsAct | KeyAct"]:
    """Newest first: one more than a page, if there are so many, before or after the query's place."""
    cursor, most = query.cursor, _PAGE + 1
    before = None if cursor.before is None else (int(cursor.before.created_at), cursor.before.id)
    after = None if cursor.after is None else (int(cursor.after.created_at), cursor.after.id)
    rows: list[_PersonsAct | KeyAct] = []
    if query.by != _KEYS:
        # The entry of a place stands before the acts of keys that came after it.
        numbers = {"before": before and before[0] + (before[1] > 0), "after": after and after[0]}
        entries = await audit_log.of_merchant(request.db, request.merchant.id, acts, query.by, most, **numbers)
        rows += [_PersonsAct(entry, name) for entry, name in entries]
    if query.by in ("", _KEYS):
        rows += await key_acts.of_merchant(request.db, request.merchant.id, acts, most, before=before, after=after)
    rows.sort(key=_place, reverse=True)
    return rows[-most:] if cursor.is_newer else rows[:most]


class _PersonsAct(NamedTuple):
    entry: Entry
    name: str | None


def _place(row: "_PersonsAct | KeyAct") -> tuple[int, int]:
    return (row.after_number, row.id) if isinstance(row, KeyAct) else (row.entry.number, 0)


def _key_row(request: MerchantRequest, act: KeyAct) -> ActivityRow:
    may_see = act.action in key_acts.ABOUT_PAYMENTS or request.may("webhooks.view")
    return ActivityRow(
        at=act.at,
        who=request.text("activity.key", key=printable(key_label(act.preview, act.name))),
        text=request.text(f"activity.act.{act.action}"),
        details=[act.detail] if act.detail is not None and may_see else [],
        env="live",
    )


def _row(request: MerchantRequest, entry: Entry, name: str | None, names: dict[UserId, str]) -> ActivityRow:
    facts = msgspec.json.decode(entry.after, type=dict[str, Any])
    person = _user(entry)
    details = [] if person is None else [names.get(person, "")]
    if entry.subject_type in _NAMED:
        details.append(entry.subject)
    role = choice(facts.get("role"), MERCHANT_ROLES)
    if role is not None:
        details.append(request.text(f"role.{role}"))
    if entry.subject_type == "key" and (name := facts.get("name")):
        details.append(printable(str(name)))
    may_see = [fact for fact, right in _FACTS.items() if right is None or request.may(right)]
    details += [str(facts[fact]) for fact in may_see if facts.get(fact) is not None]
    return ActivityRow(
        at=entry.at,
        who=name or "Guichet",
        text=request.text(f"activity.act.{entry.action}"),
        details=[detail for detail in details if detail],
        env=choice(facts.get("env"), ENVS),
    )


def _user(entry: Entry) -> UserId | None:
    """The person whom the act is about."""
    number = row_id(entry.subject) if entry.subject_type == "user" else None
    return None if number is None else UserId(number)
