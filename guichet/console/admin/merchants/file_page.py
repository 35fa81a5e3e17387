"""A merchant's file: who it is, what it may do, its team, its wallets; and the acts that change it.

The first owner of the team is invited by the staff, as by `guichet user invite`. Who else belongs to it is the owner's
business: the staff put nobody into a team that has an active owner. Two of them do, in place of an owner whose account
is disabled, or of one who has not accepted yet.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import ClassVar, Final

from starlette.responses import Response

from guichet.accounts import access_acts, approvals, mail_links, users
from guichet.accounts.invitations import Invitation, InvitationRefused, TooManyInvitations, invite, withdraw
from guichet.accounts.mail_links import OpenOffer
from guichet.back_office import merchants as administration
from guichet.back_office.merchants import read_amount, read_rate, set_limits
from guichet.console.admin.merchants.of_merchant import address, merchant_of, show_file
from guichet.console.admin.reads import record_read
from guichet.console.console import ROOT
from guichet.console.forms import Confirmed, Reason
from guichet.console.page_request import FormFault, StaffRequest
from guichet.domain.accounts import User, normal_email, normal_name
from guichet.domain.approvals import ActRequest
from guichet.domain.audit_log import CONSOLE
from guichet.domain.catalogue import MAX_DEBIT, MIN_DEBIT
from guichet.domain.events import Endpoint
from guichet.domain.merchants import (
    ENVS,
    MERCHANT_STATUSES,
    Environment,
    Merchant,
    MerchantLimits,
    MerchantStatus,
    merchant_name,
)
from guichet.domain.money import Hundredths
from guichet.domain.posting_rules import Wallet
from guichet.domain.roles import MerchantRole
from guichet.ledger import wallets
from guichet.merchants import api_keys
from guichet.merchants import limits as merchant_limits
from guichet.merchants import repository as merchants
from guichet.pages.fields import Fields, Lenient, RowId
from guichet.pages.views import View
from guichet.settings import parsers

Team = list[tuple[MerchantRole, User]]


class FileForm(Fields):
    """One act each: the status, the name, the time zone, the limits (an empty field is the common limit), the first
    owner (`person` and `email`), or an invitation that is taken back."""

    act: str = ""
    status: Lenient[MerchantStatus] = None
    name: str = ""
    time_zone: str = ""
    rate_limit: str = ""
    payment_limit: str = ""
    daily_limit: str = ""
    person: str = ""
    email: str = ""
    invitation: RowId = 0
    reason: Reason = None
    confirm: Confirmed = False


class FileView(View, frozen=True):
    """`two_people`: another person must approve an owner; `api_keys`: how many are usable in each environment;
    `wallets`: None for who may not see them; `bounds`: of one debit; `today`: what counts towards the limit of the day,
    None without one."""

    team: Team
    may_invite: bool
    invited: list[OpenOffer]
    two_people: bool
    api_keys: list[tuple[Environment, int]]
    endpoints: list[Endpoint]
    wallets: list[Wallet] | None
    common_rate: int
    today: int | None
    zone: str
    bounds: ClassVar = (MIN_DEBIT, MAX_DEBIT)
    statuses: ClassVar = MERCHANT_STATUSES


async def show(request: StaffRequest) -> Response:
    """The read is in the audit log: the page names the people of the team."""
    ctx, merchant, now = request.ctx, await merchant_of(request), request.now()
    await record_read(request, "merchant.read", "merchant", merchant.id, merchant.id)
    day = merchant_limits.day_of(merchant, now, ctx.settings.time_zone)
    usable = [key for key in await api_keys.list_of(ctx.db, merchant.id) if key.state(now) == "active"]
    team = await users.team(ctx.db, merchant.id)
    invited = await mail_links.open_offers(ctx.db, merchant.id, now)
    view = FileView(
        team=team,
        may_invite=request.may("merchants.change") and not _has_owner(team),
        invited=invited,
        two_people=any(role == "owner" for role, _ in (*team, *((member.role, member.user) for member in invited))),
        api_keys=[(env, sum(key.env == env for key in usable)) for env in ENVS],
        endpoints=[await merchants.endpoint(ctx.db, merchant.id, env) for env in ENVS],
        wallets=await wallets.wallets_of(ctx.db, merchant.id) if request.may("wallets.view") else None,
        common_rate=ctx.settings.rate_limit,
        today=await merchant_limits.total_of(ctx.db, merchant.id, day) if merchant.daily_limit is not None else None,
        zone=merchant.time_zone or str(ctx.settings.time_zone),
    )
    return show_file(request, merchant, "file", view)


async def change(request: StaffRequest) -> Response:
    form = await request.form(FileForm)
    request.require("merchants.change")
    merchant = await merchant_of(request)
    act = _ACTS.get(form.act)
    if act is None:
        raise FormFault(request.text("admin_merchants.incomplete"))
    elsewhere = await act(request, merchant, form)
    return elsewhere or request.done(address(request, merchant), _DONE.get(form.act, "saved"))


async def _set_status(request: StaffRequest, merchant: Merchant, form: FileForm) -> None:
    if form.status is None or form.reason is None:
        raise FormFault(request.text("admin_merchants.reason_missing"))
    if form.status != "active" and not form.confirm:
        raise FormFault(request.text("admin_merchants.confirm_missing"))
    ctx = request.ctx
    await administration.set_status(ctx.db, ctx.clock, merchant.id, form.status, request.actor, form.reason)


async def _set_name(request: StaffRequest, merchant: Merchant, form: FileForm) -> None:
    name = merchant_name(form.name)
    if name is None:
        raise FormFault(request.name_fault(form.name, "admin_merchants.incomplete"))
    await administration.set_name(request.db, request.ctx.clock, merchant.id, name, request.actor)


async def _set_time_zone(request: StaffRequest, merchant: Merchant, form: FileForm) -> None:
    zone_name = form.time_zone.strip()
    try:
        zone = str(parsers.time_zone(zone_name)) if zone_name else None
    except ValueError:
        raise FormFault(request.text("admin_merchants.zone_unknown")) from None
    await administration.set_time_zone(request.db, request.ctx.clock, merchant.id, zone, request.actor)


async def _set_limits(request: StaffRequest, merchant: Merchant, form: FileForm) -> None:
    texts = [text.strip() for text in (form.rate_limit, form.payment_limit, form.daily_limit)]
    readers = (read_rate, read_amount, read_amount)
    values = [read(text) if text else None for read, text in zip(readers, texts, strict=True)]
    if any(text and value is None for text, value in zip(texts, values, strict=True)):
        raise FormFault(request.text("admin_merchants.limits_wrong"))
    if form.reason is None:
        raise FormFault(request.text("admin_merchants.reason_needed"))
    rate, payment, day = values
    amounts = [None if amount is None else Hundredths(amount) for amount in (payment, day)]
    limits = MerchantLimits(rate, *amounts)
    await set_limits(request.db, request.ctx.clock, merchant.id, limits, request.actor, form.reason)


async def _invite_owner(request: StaffRequest, merchant: Merchant, form: FileForm) -> Response | None:
    """Leads to the request if another person must approve it."""
    email, name = normal_email(form.email), normal_name(form.person)
    if email is None or name is None:
        raise FormFault(request.name_fault(form.person, "admin_merchants.owner_incomplete"))
    url, outbox = request.console.public_url + ROOT, request.console.accounts.outbox
    invitation = Invitation(email, name, request.person.language, "owner", merchant)
    try:
        async with request.db.transaction() as tx:
            await merchants.lock(tx, merchant.id)  # Two of the staff could invite two people at the same moment.
            if _has_owner(await users.team(tx, merchant.id)):
                raise FormFault(request.text("admin_merchants.owner_there"))
            if not await access_acts.has_owner(tx, merchant, email, request.person.email, request.now()):
                await invite(tx, outbox, invitation, request.actor, url, request.now())
                return None
            user = await access_acts.known_or_new(tx, email, name, request.person.language, request.now())
        act_request = ActRequest("team.give_role", access_acts.team_subject(user, merchant), {"role": "owner"}, "")
        approval = await approvals.ask(request.ctx, act_request, request.person, CONSOLE)
    except TooManyInvitations:
        raise FormFault(request.text("invitations.too_many"), 429) from None
    except InvitationRefused:
        raise FormFault(request.text("admin_merchants.owner_not_possible")) from None
    return request.done(request.admin_url(f"/approvals/{approval.id}"), "asked")


def _has_owner(team: Iterable[tuple[MerchantRole, User]]) -> bool:
    """Whether somebody in this team can still invite others."""
    return any(role == "owner" and user.status != "disabled" for role, user in team)


async def _withdraw(request: StaffRequest, merchant: Merchant, form: FileForm) -> None:
    """Nothing happens if the invitation was answered meanwhile."""
    async with request.db.transaction() as tx:
        await withdraw(tx, merchant.id, form.invitation, request.actor, request.now())


_ACTS: Final[dict[str, Callable[[StaffRequest, Merchant, FileForm], Awaitable[Response | None]]]] = {
    "status": _set_status,
    "name": _set_name,
    "limits": _set_limits,
    "invite": _invite_owner,
    "withdraw": _withdraw,
    "time_zone": _set_time_zone,
}
#: What the page says then; of the others that it is saved.
_DONE: Final = {"invite": "invited", "withdraw": "withdrawn"}
