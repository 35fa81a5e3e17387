"""What people did about a merchant: its team by name, the staff as Guichet. The entries come from the audit log."""

from typing import Any, Final

import msgspec
from starlette.responses import Response

from guichet.accounts import users
from guichet.audit_log import entries
from guichet.audit_log.entries import STAFF, Entry
from guichet.console.page_request import MerchantRequest
from guichet.console.sections import MerchantPage
from guichet.domain.accounts import UserId
from guichet.domain.roles import MERCHANT_ROLES, MerchantRight

_PAGE: Final = 50
#: The acts that a merchant sees, each with a text `activity.act.` and its name.
SHOWN: Final = (
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
    "refund.payee_confirmed",
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
)
#: Acts that say how the staff works, or that are about a person and not about a merchant. A test compares both lists
#: with the code: whoever adds an act decides.
NOT_SHOWN: Final = frozenset(
    {
        "approvals.listed",
        "delivery.viewed",
        "incidents.listed",
        "staff.listed",
        "user.created",
        "user.sign_in_link_used",
        "approval.approved",
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


async def show(request: MerchantRequest) -> Response:
    query, db = request.query, request.db
    members = [user for _, user in await users.team(db, request.merchant.id)]
    team = [(user.email, user.name) for user in members]
    by = next((email for email in (STAFF, *(email for email, _ in team)) if email == query.get("by")), "")
    act = next((act for act in SHOWN if act == query.get("act")), None)
    before, after = _number(query.get("before")), _number(query.get("after"))
    wanted = (request.merchant.id, SHOWN if act is None else (act,), by, _PAGE + 1)
    found = await entries.of_merchant(db, *wanted, before=before, after=after)
    if after is not None:
        newer, older, found = len(found) > _PAGE, True, found[-_PAGE:]
    else:
        newer, older, found = before is not None, len(found) > _PAGE, found[:_PAGE]
    about = {number for entry, _ in found if (number := _user(entry)) is not None}
    # Who was only invited may be a stranger: the team learns no name before they have joined.
    invited = {_user(entry) for entry, _ in found if entry.action in _INVITATIONS} - {user.id for user in members}
    names = await users.names(db, {number for number in about if number not in invited})
    filters = {"by": by, "act": act}
    return request.show(
        "activity.html",
        rows=[_described(request, entry, name, names) for entry, name in found],
        filters=filters,
        people=[("", request.text("activity.everybody")), *team, (STAFF, "Guichet")],
        acts=[("", request.text("activity.every_act")), *((act, request.text(f"activity.act.{act}")) for act in SHOWN)],
        newer=request.here("/activity", None, **filters, after=str(found[0][0].number)) if newer and found else None,
        older=request.here("/activity", None, **filters, before=str(found[-1][0].number)) if older and found else None,
    )


def _described(request: MerchantRequest, entry: Entry, name: str | None, names: dict[UserId, str]) -> dict[str, Any]:
    facts = msgspec.json.decode(entry.after, type=dict[str, Any])
    number = _user(entry)
    details = [] if number is None else [names.get(number, "")]
    if entry.subject_type in _NAMED:
        details.append(entry.subject)
    role = next((role for role in MERCHANT_ROLES if role == facts.get("role")), None)
    if role is not None:
        details.append(request.text(f"role.{role}"))
    may_see = [fact for fact, right in _FACTS.items() if right is None or request.may(right)]
    details += [str(facts[fact]) for fact in may_see if facts.get(fact) is not None]
    env = facts.get("env")
    return {
        "at": entry.at,
        "who": name or "Guichet",
        "text": request.text(f"activity.act.{entry.action}"),
        "details": [each for each in details if each],
        "env": env if env in ("test", "live") else None,
    }


def _user(entry: Entry) -> UserId | None:
    """The person whom the act is about."""
    return UserId(int(entry.subject)) if entry.subject_type == "user" and entry.subject.isdigit() else None


def _number(text: str | None) -> int | None:
    """The number of an entry; None for what is none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


PAGES: Final = (MerchantPage("/activity", "activity.view", show, menu="activity"),)
