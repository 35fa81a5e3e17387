"""The addresses of the console: `/console` and the path of a person's page (`page_tables.py`),
`/console/<merchant>/<live or test>` and that of a merchant's, `/admin` and that of the staff's; scripts, the style
sheet and icons at `/console/assets/<name>`; what a telephone installs the console by (`installation.py`)."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from guichet.accounts.errors import AccountError, CodeRefused, Forbidden, PasswordWeak, TooBusy, TooManyAttempts
from guichet.accounts.passwords import Passwords
from guichet.accounts.rights import Member, member
from guichet.accounts.sessions import Devices
from guichet.accounts.sign_in import Accounts, SessionState, WithoutPassword
from guichet.console.console import ADMIN_ROOT, ASSETS_PATH, ROOT, Console
from guichet.console.error_pages import ConsoleLimitMiddleware, error_page
from guichet.console.installation import installation_routes
from guichet.console.page_request import ConsoleRequest, FormFault, FormRefused, MerchantRequest, StaffRequest
from guichet.console.page_tables import (
    DEMONSTRATION_PAGES,
    DEVELOPMENT_PAGES,
    MERCHANT_PAGES,
    OPEN,
    PERSON_PAGES,
    STAFF_PAGES,
    PersonPage,
)
from guichet.console.sections import (
    MERCHANT_MENU,
    STAFF_MENU,
    MerchantPage,
    StaffPage,
    merchant_navigation,
    section_of,
    sections_of,
    staff_navigation,
)
from guichet.console.sign_in_limits import SignInLimits
from guichet.context import AppContext
from guichet.domain.audit_log import ActRefused
from guichet.domain.merchants import ENVS
from guichet.logs import log
from guichet.mail.outbox import Outbox
from guichet.pages.cookies import HostCookies
from guichet.pages.fields import choice, or_not_found, register_row_ids
from guichet.server.error_handler import Application, application
from guichet.server.rate_limit import RateLimiter
from guichet.server.rate_limits import console_limit
from guichet.server.request_context import ClientAddresses

AnyRequest = TypeVar("AnyRequest", bound=ConsoleRequest)


def console_application(
    ctx: AppContext, limiter: RateLimiter, passwords: Passwords, without_password: WithoutPassword | None = None
) -> Application:
    """For the root of the server, below `server.request_context.RequestContext`. `without_password`: of a
    demonstration."""
    console = _console(ctx, limiter, passwords, without_password if ctx.settings.development else None)
    register_row_ids()
    person_pages = (
        *PERSON_PAGES,
        *(DEVELOPMENT_PAGES if ctx.settings.development else ()),
        *(DEMONSTRATION_PAGES if console.without_password else ()),
    )
    routes = [
        *(_merchant_page(console, page) for page in MERCHANT_PAGES),
        *(_staff_page(console, page) for page in STAFF_PAGES),
        *(_person_page(console, page) for page in person_pages),
        Route(f"{ASSETS_PATH}/{{name}}", _asset(console)),
        *installation_routes(console),
    ]
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
        cookies=HostCookies(secure=public.scheme == "https"),
        addresses=ClientAddresses.of(settings),
        public_url=settings.public_url,
        base_path=public.path.rstrip("/"),
        without_password=without_password,
    )


class Handler(Generic[AnyRequest]):
    """The function behind an address. The tables of pages name it, and its module is imported when it is first called:
    the memory of a server at rest is that of its API. `tests/console/test_page_tables.py` finds a name that is wrong.
    """

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name
        self._function: Callable[..., Awaitable[Response]] | None = None

    async def __call__(self, request: AnyRequest) -> Response:
        if self._function is None:  # In a thread, which takes turns with the event loop: payments go on.
            self._function = await asyncio.to_thread(self.load)
        return await self._function(request)

    def load(self) -> Callable[..., Awaitable[Response]]:
        function: Callable[..., Awaitable[Response]] = getattr(import_module(self._module), self._name)
        return function


def _merchant_page(console: Console, page: MerchantPage) -> Route:
    """A page that only members of the merchant's team with the page's right may open, or post to."""
    sections = sections_of(MERCHANT_PAGES, MERCHANT_MENU)
    section = section_of(sections, page)

    async def admit(request: MerchantRequest) -> None:
        request.act_as(_member(request))
        # Before the right is checked: a refusal, too, shows the way to the other pages.
        request.navigation = merchant_navigation(sections, section, request)
        if not request.may(page.right):
            raise Forbidden

    path = f"{ROOT}/{{merchant:row}}/{{env}}{page.path}"
    return _page(console, path, page, f"guichet.console.{page.module}", OPEN, MerchantRequest, admit)


def _member(request: MerchantRequest) -> Member:
    env = choice(request.path["env"], ENVS)
    return member(*request.signed_in, request.memberships, request.path["merchant"], or_not_found(env))


def _staff_page(console: Console, page: StaffPage) -> Route:
    """A page that only staff with the page's right may open, or post to."""
    sections = sections_of(STAFF_PAGES, STAFF_MENU)
    section = section_of(sections, page)

    async def admit(request: StaffRequest) -> None:
        request.navigation = staff_navigation(sections, section, request)
        if not request.may(page.right):
            raise Forbidden

    return _page(
        console, ADMIN_ROOT + page.path, page, f"guichet.console.admin.{page.module}", OPEN, StaffRequest, admit
    )


def _person_page(console: Console, page: PersonPage) -> Route:
    return _page(console, ROOT + page.path, page, f"guichet.console.{page.module}", page.states, ConsoleRequest)


def _page(
    console: Console,
    path: str,
    page: MerchantPage | StaffPage | PersonPage,
    module: str,
    states: tuple[SessionState, ...] | None,
    kind: type[AnyRequest],
    admit: Callable[[AnyRequest], Awaitable[None]] | None = None,
) -> Route:
    """`states`: as `PersonPage` has them. `admit` raises Forbidden for somebody who may not see the page. A form with a
    fault, or for an act that is refused, is answered with its page, which says what is wrong."""
    show: Handler[AnyRequest] = Handler(module, page.show)
    change: Handler[AnyRequest] | None = Handler(module, page.change) if page.change else None

    async def answer(request: AnyRequest, method: str) -> Response:
        if change is None or method != "POST":
            return await show(request)
        try:
            return await change(request)
        except FormFault as fault:
            request.fault = fault
        except (ActRefused, CodeRefused, PasswordWeak, TooBusy, TooManyAttempts) as refusal:
            request.fault = request.fault_of(refusal)
        return await show(request)

    async def endpoint(http: Request) -> Response:
        request = await kind.begin(console, http)
        if states is not None:
            if request.user is None:
                return request.redirect(request.console_url("/sign-in", next=_own_path(http)))
            if request.state not in states:
                return request.redirect(
                    request.console_url("/factor" if request.state == "needs_factor" else "/factor/setup")
                )
        try:
            if admit is not None:
                await admit(request)
            return await answer(request, http.method)
        except (Forbidden, FormRefused) as refused:
            who = {"user": request.user.id if request.user else None, "merchant": request.path.get("merchant")}
            log.info("access.refused", method=http.method, path=path, why=type(refused).__name__, **who)
            raise

    return Route(path, endpoint, methods=["GET", "POST"] if change else ["GET"])


def _own_path(request: Request) -> str | None:
    """Where to go on after the sign-in: the page that was asked for, unless a form was sent to it."""
    return request.url.path if request.method == "GET" else None


def _asset(console: Console) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return ConsoleRequest(console, request).asset()

    return endpoint
