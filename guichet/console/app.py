"""The addresses of the console.

GET POST /console/sign-in               address and password
GET      /console/sign-in/<secret>      signs in by a link that `guichet demo` printed (development)
POST     /console/sign-out
GET POST /console/factor                a one-time or recovery code; again before acts that need a fresh one
GET POST /console/factor/setup          the QR code of a telephone, and its first code
GET POST /console/factor/change         another telephone in place of the one before
POST     /console/passkey/question      what the script asks the browser, as JSON
POST     /console/passkey               the browser's answer: signs in, or is the second factor
GET POST /console/password              asks for a link to a new password
GET POST /console/password/<secret>     chooses it
GET POST /console/invitation/<secret>   accepts an invitation
GET      /console                       the merchants that somebody works for; with one, on to its overview
GET POST /console/security              factors and sessions
GET POST /console/security/password     another password
GET      /console/mailbox               what would have been mailed (development)
GET      /console/assets/<name>         the script

Pages about one merchant are at `/console/<merchant>/<live or test>` and the path that `merchant_pages.py` gives them;
those of the back office at `/admin` and the path of `staff_pages.py`.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from guichet.accounts.devices import Devices
from guichet.accounts.errors import AccountError, Forbidden
from guichet.accounts.passwords import Passwords
from guichet.accounts.rights import Member, StaffMember, member, staff_member
from guichet.accounts.sign_in import Accounts, SessionState, WithoutPassword
from guichet.console import (
    factor_pages,
    home_page,
    mailbox_page,
    passkey_pages,
    password_pages,
    security_page,
    sign_in_page,
)
from guichet.console.cookies import Cookies
from guichet.console.error_pages import ConsoleLimitMiddleware, error_page
from guichet.console.merchant_pages import MERCHANT_PAGES
from guichet.console.row_ids import register_row_ids
from guichet.console.sections import MerchantPage, StaffPage, environment_switch, merchant_menu, staff_menu
from guichet.console.sign_in_limits import SignInLimits
from guichet.console.staff_pages import STAFF_PAGES
from guichet.console.visit import ADMIN_ROOT, ASSETS_PATH, ROOT, Console, FormRefused, Visit
from guichet.context import AppContext
from guichet.domain.errors import NotFound
from guichet.domain.merchants import ENVS
from guichet.logs import log
from guichet.mail.outbox import Outbox
from guichet.server.error_handler import Application, application
from guichet.server.rate_limit import RateLimiter
from guichet.server.rate_limits import console_limit
from guichet.server.request_context import ClientAddresses

Handler = Callable[[Visit], Awaitable[Response]]

#: For whom a page is, by the state of the session; None: for anybody.
_ANY: Final[tuple[SessionState, ...] | None] = None
_OPEN: Final[tuple[SessionState, ...]] = ("open",)
_SIGNED_IN: Final[tuple[SessionState, ...]] = ("open", "needs_factor", "needs_setup")


def console_application(
    ctx: AppContext, limiter: RateLimiter, passwords: Passwords, without_password: WithoutPassword | None = None
) -> Application:
    """For the root of the server, below `server.request_context.RequestContext`. `without_password`: of a
    demonstration."""
    console = _console(ctx, limiter, passwords, without_password if ctx.settings.development else None)
    register_row_ids()
    page = partial(_page, console)
    routes = [
        page("/sign-in", sign_in_page.show, sign_in_page.sign_in, _ANY),
        page("/sign-out", sign_in_page.leave, sign_in_page.sign_out, _SIGNED_IN),
        page("/factor", factor_pages.ask, factor_pages.give, ("open", "needs_factor")),
        page("/factor/change", factor_pages.show_new_telephone, factor_pages.take_new_telephone, _OPEN),
        page("/passkey", passkey_pages.show, passkey_pages.answer, _ANY),
        page("/passkey/question", passkey_pages.show, passkey_pages.ask, _ANY),
        page("/factor/setup", factor_pages.show_setup, factor_pages.set_up, ("open", "needs_setup")),
        page("/password", password_pages.show_request, password_pages.request_link, _ANY),
        page("/password/{secret}", password_pages.show_new, password_pages.choose_new, _ANY),
        page("/invitation/{secret}", password_pages.show_invitation, password_pages.accept_invitation, _ANY),
        page("/", home_page.show, None, _OPEN),
        page("", home_page.show, None, _OPEN),
        page("/security/password", password_pages.show_own, password_pages.change_own, _OPEN),
        page("/security", security_page.show, security_page.change, _OPEN),
        *(_merchant_page(page, each) for each in MERCHANT_PAGES),
        *(_staff_page(console, each) for each in STAFF_PAGES),
        Route(f"{ASSETS_PATH}/{{name}}", _asset(console)),
    ]
    if ctx.settings.development:
        routes.append(page("/mailbox", mailbox_page.show, None, _ANY))
    if console.without_password is not None:
        routes.append(page("/sign-in/{secret}", sign_in_page.sign_in_by_link, None, _ANY))
    limited = [Middleware(ConsoleLimitMiddleware, console, limiter, console_limit(ctx.settings))]
    return application(routes, limited, partial(error_page, console), (AccountError,))


def _console(
    ctx: AppContext, limiter: RateLimiter, passwords: Passwords, without_password: WithoutPassword | None
) -> Console:
    settings = ctx.settings
    accounts = Accounts(
        ctx=ctx,
        passwords=passwords,
        devices=Devices(settings.secret_keys, ctx.clock),
        outbox=Outbox(ctx.vault),
        limits=SignInLimits(limiter),
        reset_address=f"{settings.public_url}{ROOT}/password",
    )
    public = urlsplit(settings.public_url)
    return Console(
        accounts=accounts,
        cookies=Cookies(secure=public.scheme == "https"),
        addresses=ClientAddresses.of(settings),
        public_url=settings.public_url,
        base_path=public.path.rstrip("/"),
        without_password=without_password,
    )


def _merchant_page(page: "Callable[..., Route]", spec: MerchantPage) -> Route:
    """A page that only members of the merchant's team with the page's right may open, or post to."""

    def as_member(handler: Callable[[Visit, Member], Awaitable[Response]] | None) -> Handler | None:
        async def handle(visit: Visit) -> Response:
            acting = await _acting(visit)
            # Before the right is asked: a refusal, too, shows the way to the other pages.
            visit.act_as(acting)
            visit.menu = merchant_menu(MERCHANT_PAGES, spec, visit, acting)
            visit.environments = environment_switch(MERCHANT_PAGES, spec, visit, acting)
            if not acting.may(spec.right):
                raise Forbidden
            assert handler is not None
            return await handler(visit, acting)

        return handle if handler is not None else None

    return page(f"/{{merchant:row}}/{{env}}{spec.path}", as_member(spec.show), as_member(spec.change), _OPEN)


async def _acting(visit: Visit) -> Member:
    session, user = visit.signed_in
    path = visit.request.path_params
    env = next((env for env in ENVS if env == path["env"]), None)
    if env is None:
        raise NotFound
    return await member(visit.console.ctx.db, session, user, path["merchant"], env)


def _staff_page(console: Console, spec: StaffPage) -> Route:
    """A page that only staff with the page's right may open, or post to."""

    def as_staff(handler: Callable[[Visit, StaffMember], Awaitable[Response]] | None) -> Handler | None:
        async def handle(visit: Visit) -> Response:
            acting = staff_member(*visit.signed_in)
            visit.menu = staff_menu(STAFF_PAGES, spec, visit, acting)
            if not acting.may(spec.right):
                raise Forbidden
            assert handler is not None
            return await handler(visit, acting)

        return handle if handler is not None else None

    return _page(console, spec.path, as_staff(spec.show), as_staff(spec.change), _OPEN, root=ADMIN_ROOT)


def _page(
    console: Console,
    path: str,
    get: Handler | None,
    post: Handler | None,
    states: tuple[SessionState, ...] | None,
    root: str = ROOT,
) -> Route:
    """`states`: those of a session that may see the page. Anybody else is sent where they must go first."""

    async def endpoint(request: Request) -> Response:
        visit = await Visit.begin(console, request)
        if states is not None:
            if visit.user is None:
                return visit.redirect(visit.at("/sign-in", next=_own_path(request)))
            if visit.state not in states:
                return visit.redirect(visit.at("/factor" if visit.state == "needs_factor" else "/factor/setup"))
        handler = post if request.method == "POST" else get
        assert handler is not None
        try:
            return await handler(visit)
        except (Forbidden, FormRefused) as refused:
            merchant, user = request.path_params.get("merchant"), visit.user
            who = {"user": user.id if user else None, "merchant": merchant}
            log.info("access.refused", method=request.method, path=root + path, why=type(refused).__name__, **who)
            raise

    return Route(root + path, endpoint, methods=[method for method, each in (("GET", get), ("POST", post)) if each])


def _own_path(request: Request) -> str | None:
    """Where to go on after the sign-in: the page that was asked for, unless a form was sent to it."""
    return request.url.path if request.method == "GET" else None


def _asset(console: Console) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return Visit(console, request).asset()

    return endpoint
