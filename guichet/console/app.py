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
GET POST /console/objection/<secret>    objects to a new approver
GET      /console                       the merchants that somebody works for; with one, on to its overview
GET POST /console/security              factors and sessions
GET POST /console/security/password     another password
GET      /console/mailbox               what would have been mailed (development)
GET      /console/assets/<name>         scripts, the style sheet, icons
GET      /console/manifest.webmanifest  how a telephone installs the console
GET      /console/offline.js            the service worker

Pages about one merchant are at `/console/<merchant>/<live or test>` and the path that `merchant_pages.py` gives them;
those of the back office at `/admin` and the path of `staff_pages.py`.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar
from urllib.parse import urlsplit

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from guichet.accounts.errors import AccountError, Forbidden
from guichet.accounts.passwords import Passwords
from guichet.accounts.rights import Member, member
from guichet.accounts.sessions import Devices
from guichet.accounts.sign_in import Accounts, SessionState, WithoutPassword
from guichet.console import (
    factor_pages,
    home_page,
    mailbox_page,
    objection_page,
    passkey_pages,
    password_pages,
    security_page,
    sign_in_page,
)
from guichet.console.console import ADMIN_ROOT, ASSETS_PATH, ROOT, Console
from guichet.console.cookies import Cookies
from guichet.console.error_pages import ConsoleLimitMiddleware, error_page
from guichet.console.installation import installation_routes
from guichet.console.merchant_pages import MERCHANT_PAGES
from guichet.console.page_request import ConsoleRequest, FormRefused, MerchantRequest, StaffRequest
from guichet.console.payments import refund_page
from guichet.console.sections import (
    MerchantPage,
    StaffPage,
    merchant_navigation,
    merchant_sections,
    section_of,
    staff_navigation,
    staff_sections,
)
from guichet.console.sign_in_limits import SignInLimits
from guichet.console.staff_pages import STAFF_PAGES
from guichet.context import AppContext
from guichet.domain.errors import NotFound
from guichet.domain.merchants import ENVS
from guichet.logs import log
from guichet.mail.outbox import Outbox
from guichet.pages.fields import choice, register_row_ids
from guichet.server.error_handler import Application, application
from guichet.server.rate_limit import RateLimiter
from guichet.server.rate_limits import console_limit
from guichet.server.request_context import ClientAddresses

AnyRequest = TypeVar("AnyRequest", bound=ConsoleRequest)

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
    page = partial(_page, console, kind=ConsoleRequest)
    routes = [
        # First what is opened most: each address above is compared with the one that was asked for.
        *(_merchant_page(console, page_of_merchant) for page_of_merchant in MERCHANT_PAGES),
        *(_staff_page(console, staff_page) for staff_page in STAFF_PAGES),
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
        page("/objection/{secret}", objection_page.show, objection_page.object_to, _ANY),
        page("/refund/{reference}", refund_page.find, None, _OPEN),
        page("/", home_page.show, None, _OPEN),
        page("", home_page.show, None, _OPEN),
        page("/security/password", password_pages.show_own, password_pages.change_own, _OPEN),
        page("/security", security_page.show, security_page.change, _OPEN),
        Route(f"{ASSETS_PATH}/{{name}}", _asset(console)),
        *installation_routes(console),
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


def _merchant_page(console: Console, page: MerchantPage) -> Route:
    """A page that only members of the merchant's team with the page's right may open, or post to."""
    sections = merchant_sections(MERCHANT_PAGES)
    section = section_of(sections, page)

    async def admit(request: MerchantRequest) -> None:
        request.act_as(_member(request))
        # Before the right is checked: a refusal, too, shows the way to the other pages.
        request.navigation = merchant_navigation(sections, section, request)
        if not request.may(page.right):
            raise Forbidden

    path = f"/{{merchant:row}}/{{env}}{page.path}"
    return _page(console, path, page.show, page.change, _OPEN, MerchantRequest, admit)


def _member(request: MerchantRequest) -> Member:
    env = choice(request.path["env"], ENVS)
    if env is None:
        raise NotFound
    return member(*request.signed_in, request.places, request.path["merchant"], env)


def _staff_page(console: Console, page: StaffPage) -> Route:
    """A page that only staff with the page's right may open, or post to."""
    sections = staff_sections(STAFF_PAGES)
    section = section_of(sections, page)

    async def admit(request: StaffRequest) -> None:
        request.navigation = staff_navigation(sections, section, request)
        if not request.may(page.right):
            raise Forbidden

    return _page(console, page.path, page.show, page.change, _OPEN, StaffRequest, admit, root=ADMIN_ROOT)


def _page(
    console: Console,
    path: str,
    get: Callable[[AnyRequest], Awaitable[Response]] | None,
    post: Callable[[AnyRequest], Awaitable[Response]] | None,
    states: tuple[SessionState, ...] | None,
    kind: type[AnyRequest],
    admit: Callable[[AnyRequest], Awaitable[None]] | None = None,
    root: str = ROOT,
) -> Route:
    """`states`: those of a session that may see the page; anybody else is sent where they must go first. `admit` raises
    Forbidden for somebody who may not see it."""

    async def endpoint(http: Request) -> Response:
        request = await kind.begin(console, http)
        if states is not None:
            if request.user is None:
                return request.redirect(request.at("/sign-in", next=_own_path(http)))
            if request.state not in states:
                return request.redirect(request.at("/factor" if request.state == "needs_factor" else "/factor/setup"))
        handler = post if http.method == "POST" else get
        assert handler is not None
        try:
            if admit is not None:
                await admit(request)
            return await handler(request)
        except (Forbidden, FormRefused) as refused:
            who = {"user": request.user.id if request.user else None, "merchant": request.path.get("merchant")}
            log.info("access.refused", method=http.method, path=root + path, why=type(refused).__name__, **who)
            raise

    methods = [method for method, handler in (("GET", get), ("POST", post)) if handler]
    return Route(root + path, endpoint, methods=methods)


def _own_path(request: Request) -> str | None:
    """Where to go on after the sign-in: the page that was asked for, unless a form was sent to it."""
    return request.url.path if request.method == "GET" else None


def _asset(console: Console) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return ConsoleRequest(console, request).asset()

    return endpoint
