"""`guichet user …`: the people who use the console (docs/security.md)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final, get_args

import typer
from msgspec import structs

from guichet.accounts import mail_links, people, users
from guichet.accounts.errors import LastOwner, OnBothSides
from guichet.accounts.invitations import Invitation, InvitationRefused, Invited, invite, withdraw
from guichet.cli.arguments import Json, MerchantIdValue, OptionalBy, actor, email_address, merchant_option, parser
from guichet.cli.console import console, print_json, print_table, show_done
from guichet.cli.errors import CommandError, fail
from guichet.cli.runner import get_merchant, run
from guichet.clock import Instant
from guichet.context import AppContext
from guichet.db.engine import Reader, Transaction
from guichet.domain.accounts import Language, User, normal_name
from guichet.domain.ids import MerchantId
from guichet.domain.records import described, iso_or_none
from guichet.domain.roles import MERCHANT_ROLES, STAFF_ROLES, MerchantRole, StaffRole
from guichet.mail.outbox import Outbox

app = typer.Typer(no_args_is_help=True, help="People who use the console: invitations, roles, lost factors.")

_ROLES: Final = f"With `--merchant`: {', '.join(MERCHANT_ROLES)}. With `--staff`: {', '.join(STAFF_ROLES)}."


_name = parser(normal_name, "1 to 100 printable characters without a web or mail address are expected.")
Email = Annotated[str, typer.Argument(parser=email_address, metavar="EMAIL", help="The person's e-mail address.")]
OfMerchant = Annotated[MerchantIdValue | None, merchant_option("The merchant whose team it is.")]
OfStaff = Annotated[bool, typer.Option("--staff", help="The staff of the service.")]
Role = Annotated[str, typer.Option("--role", metavar="ROLE", help=_ROLES)]


@app.command("invite", epilog="Example: `guichet user invite awa@example.com --name Awa --merchant 1 --role owner`")
def invite_user(
    email: Email,
    role: Role,
    name: Annotated[str, typer.Option(parser=_name, metavar="NAME", help="How they are addressed.")],
    merchant: OfMerchant = None,
    staff: OfStaff = False,
    language: Annotated[Language, typer.Option(help="Of the mails and pages.")] = "fr",
    by: OptionalBy = None,
    as_json: Json = False,
) -> None:
    """Offer a person a place in a team, which they accept by the link of a mail, or give a role of the staff.

    Without GUICHET_SMTP_URL the link is printed.
    """
    chosen = _checked_role(role, merchant, staff=staff)

    async def work(ctx: AppContext) -> tuple[Invited, str | None]:
        team_merchant = None if merchant is None else await get_merchant(ctx.db, merchant)
        invitation = Invitation(email, name, language, chosen, team_merchant)
        console_url = f"{ctx.settings.public_url}/console"
        async with ctx.db.transaction() as tx:
            outbox, who, now = Outbox(ctx.vault), actor(by), ctx.clock.now()
            if team_merchant is not None:
                await people.tell_owners(tx, outbox, team_merchant, email, chosen, who, now)  # type: ignore[arg-type]
            invited = await invite(tx, outbox, invitation, who, console_url, now)
        mailed = ctx.settings.smtp_url is not None or invited.secret is None
        return invited, None if mailed else f"{console_url}/invitation/{invited.secret}"

    with _refusals_said(email):
        invited, link = run(work)
    user = invited.user
    if as_json:
        print_json({**_described(user), "link": link})
    elif link is not None:
        console.print(f"{user.email} is invited. No mail can be sent, so give them this address; it works once:")
        console.print(f"  {link}", soft_wrap=True)
    elif invited.secret is not None:
        console.print(f"{user.email} is invited, and is mailed a link that works once, for 7 days.")
    else:
        console.print(f"{user.email} has an account already, and has this role now.")


@app.command("list", epilog="Example: `guichet user list --merchant 1`")
def list_users(merchant: OfMerchant = None, as_json: Json = False) -> None:
    """List a merchant's team; without `--merchant`, the staff."""

    async def work(ctx: AppContext) -> list[tuple[str, User]]:
        db = ctx.db
        if merchant is None:
            return [(user.staff_role or "", user) for user in await users.staff_in(db)]
        await get_merchant(db, merchant)
        team: list[tuple[str, User]] = [*await users.team(db, merchant)]
        offers = await mail_links.open_offers(db, merchant, ctx.clock.now())
        # Of this team, somebody who has not accepted is no active member.
        return [*team, *((offer.role, structs.replace(offer.user, status="invited")) for offer in offers)]

    members = run(work)
    if as_json:
        print_json({"users": [{**_described(user), "role": role} for role, user in members]})
        return
    rows = [
        (user.id, user.email, user.name, role, user.status, "yes" if user.totp_confirmed else "no",
         iso_or_none(user.last_signed_in_at) or "–")
        for role, user in members
    ]  # fmt: skip
    print_table(("Id", "E-mail", "Name", "Role", "Status", "Codes", "Last signed in"), rows)


@app.command("role", epilog="Example: `guichet user role awa@example.com finance --merchant 1`")
def change_role(
    email: Email,
    role: Annotated[str, typer.Argument(metavar="ROLE|none", help=f"{_ROLES} `none` takes the person out.")],
    merchant: OfMerchant = None,
    staff: OfStaff = False,
    by: OptionalBy = None,
    as_json: Json = False,
) -> None:
    """Change a person's role, take them out of a team, or take an invitation back."""
    chosen = None if role == "none" else _checked_role(role, merchant, staff=staff)
    _checked_place(merchant, staff=staff)

    async def work(ctx: AppContext) -> User:
        now = ctx.clock.now()
        async with ctx.db.transaction() as tx:
            user = await _locked(tx, email)
            if merchant is None:
                await people.set_staff_role(tx, Outbox(ctx.vault), user, chosen, actor(by), now)  # type: ignore[arg-type]
                return user
            if chosen is None and await _withdrawn(tx, user, merchant, by, now):
                return user
            if await users.membership(tx, user.id, merchant) is None:
                raise CommandError(f"{email} is not in the team of merchant {merchant}: invite them.")
            if chosen is not None:
                place = await get_merchant(tx, merchant)
                await people.tell_owners(tx, Outbox(ctx.vault), place, email, chosen, actor(by), now)  # type: ignore[arg-type]
            await people.set_merchant_role(tx, user, merchant, chosen, actor(by), now)  # type: ignore[arg-type]
            return user

    with _refusals_said(email, "active admin" if merchant is None else "owner of this merchant"):
        user = run(work)
    place = "the staff" if merchant is None else f"merchant {merchant}"
    sentence = f"{user.email} is {'no longer with' if chosen is None else f'{chosen} of'} {place}."
    show_done({"email": user.email, "merchant_id": merchant, "role": chosen}, sentence, as_json=as_json)


@app.command(epilog="Example: `guichet user disable awa@example.com`")
def disable(email: Email, by: OptionalBy = None, as_json: Json = False) -> None:
    """Disable an account: every session ends, and nobody can sign in with it."""
    _set_status(email, by, enabled=False, as_json=as_json)


@app.command(epilog="Example: `guichet user enable awa@example.com`")
def enable(email: Email, by: OptionalBy = None, as_json: Json = False) -> None:
    """Enable a disabled account again, with the roles that it had."""
    _set_status(email, by, enabled=True, as_json=as_json)


@app.command("reset-factor", epilog="Example: `guichet user reset-factor awa@example.com`")
def reset_factor(email: Email, by: OptionalBy = None, as_json: Json = False) -> None:
    """Remove the second factors of a person who lost theirs. Make sure first that it is them; a mail tells them."""

    async def work(ctx: AppContext) -> User:
        async with ctx.db.transaction() as tx:
            user = await _existing(tx, email)
            address = f"{ctx.settings.public_url}/console/password"
            await people.reset_factor(tx, Outbox(ctx.vault), user, actor(by), address, ctx.clock.now())
            return await _existing(tx, email)

    user = run(work)
    sentence = f"{email} has no second factor any more, and sets up a new one after the password."
    show_done(_described(user), sentence, as_json=as_json)


def _set_status(email: str, by: str | None, *, enabled: bool, as_json: bool) -> None:
    async def work(ctx: AppContext) -> User:
        async with ctx.db.transaction() as tx:
            user = await _locked(tx, email)
            change = people.enable if enabled else people.disable
            return await change(tx, Outbox(ctx.vault), user, actor(by), ctx.clock.now())

    with _refusals_said(email):
        user = run(work)
    show_done(_described(user), f"The account of {user.email} is {user.status}.", as_json=as_json)


@contextmanager
def _refusals_said(email: str, last: str = "active admin") -> Iterator[None]:
    """A refusal ends the command with one sentence. `last`: of whom one must be left."""
    try:
        yield
    except InvitationRefused as error:
        fail(error)
    except LastOwner:
        fail(f"{email} is the last {last}: give that role to somebody else first.")
    except OnBothSides:
        fail(f"{email} is in a merchant's team: staff need an address of their own.")


async def _existing(db: Reader, email: str) -> User:
    user = await users.by_email(db, email)
    if user is None:
        raise CommandError(f"Nobody has the address {email}.")
    return user


async def _locked(tx: Transaction, email: str) -> User:
    return await people.lock(tx, (await _existing(tx, email)).id)


async def _withdrawn(tx: Transaction, user: User, merchant_id: MerchantId, by: str | None, now: Instant) -> bool:
    """Whether there was an open invitation, which is taken back."""
    for offer in await mail_links.open_offers(tx, merchant_id, now):
        if offer.user.id == user.id:
            await withdraw(tx, merchant_id, offer.id, actor(by), now)
            return True
    return False


def _checked_place(merchant: int | None, *, staff: bool) -> None:
    if (merchant is None) is not staff:
        raise typer.BadParameter("Say which: `--merchant MERCHANT_ID` or `--staff`.")


def _checked_role(role: str, merchant: int | None, *, staff: bool) -> MerchantRole | StaffRole:
    _checked_place(merchant, staff=staff)
    roles: tuple[MerchantRole | StaffRole, ...] = get_args(StaffRole) if staff else get_args(MerchantRole)
    known_role = next((name for name in roles if name == role), None)
    if known_role is None:
        raise typer.BadParameter(f"{role} is no role here; one of {', '.join(roles)} is expected.")
    return known_role


def _described(user: User) -> dict[str, object]:
    names = "id email name status staff_role codes created_at last_signed_in_at"
    return described(user, names.split(), codes=user.totp_confirmed)
