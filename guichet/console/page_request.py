"""One request for a page of the console: who is signed in, the token of its forms, and what every page shows around its
content."""

from datetime import date
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Self, TypeVar
from urllib.parse import parse_qsl, urlencode

from markupsafe import Markup
from msgspec import field, structs
from starlette.requests import Request
from starlette.responses import Response

from guichet.accounts import sessions
from guichet.accounts.errors import AccountError, TooManyAttempts
from guichet.accounts.rights import Member, StaffMember, staff_member
from guichet.accounts.sign_in import Accounts, Browser, SessionState, SignedIn, WithoutPassword, state_of
from guichet.clock import Instant
from guichet.console import form_tokens
from guichet.console.cookies import Cookies
from guichet.console.messages import said, word
from guichet.context import AppContext
from guichet.db.engine import Database
from guichet.domain.accounts import Session, User, is_secret
from guichet.domain.audit_log import Actor, ActRefused
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment, Merchant
from guichet.domain.messages import TEXTS, Answer
from guichet.domain.money import Currency, plain, round_to_currency
from guichet.domain.names import holds_address
from guichet.domain.payments import Payment
from guichet.domain.records import Record
from guichet.domain.roles import MerchantRight, MerchantRole, StaffRight, may_as_merchant
from guichet.pages import formatting, i18n
from guichet.pages.fields import Fields
from guichet.pages.forms import is_from_elsewhere, read_form
from guichet.pages.page_request import PageRequest
from guichet.pages.render import Renderer
from guichet.pages.uploads import Upload, read_upload
from guichet.pages.views import View
from guichet.printable import printable
from guichet.server.doctor.service_checks import LastChecks
from guichet.server.request_context import ClientAddresses

ROOT: Final = "/console"
ADMIN_ROOT: Final = "/admin"
ASSETS_PATH: Final = f"{ROOT}/assets"
Form = TypeVar("Form", bound=Fields)

#: Of a name that was refused, so much is read to say why.
_LONGEST_NAME: Final = 400
#: Of what an act did.
_MOST_FACTS: Final = 8
#: Where Starlette's request keeps ours, for the page of an error: the menu is known, and nothing is read again.
PAGE_REQUEST: Final = "guichet.page_request"


class FormFault(Exception):
    """What is wrong with a form, for the person who sent it: its page is shown again."""

    def __init__(self, text: str, status: int = 422) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


class FormRefused(AccountError):
    """The form was not sent by a page of ours, or by one of a session that ended."""


@cache
def console_renderer() -> Renderer:
    """For the whole process: reading the texts and compiling the templates takes 50 ms."""
    return Renderer(Path(__file__).parent, ASSETS_PATH, *TEXTS, linked=True)


class Console(Record, frozen=True):
    """What all pages of the console need, built once for the process. `public_url` has no slash at the end; `base_path`
    is its path."""

    accounts: Accounts
    cookies: Cookies
    addresses: ClientAddresses
    public_url: str
    base_path: str
    #: Only in a demonstration.
    without_password: WithoutPassword | None = None
    renderer: Renderer = field(default_factory=console_renderer)
    checks: LastChecks = field(default_factory=LastChecks)

    @property
    def ctx(self) -> AppContext:
        return self.accounts.ctx


class MenuEntry(Record, frozen=True):
    text: str
    href: str
    #: Whether it leads to the page that is shown, or to one above it.
    here: bool
    name: str
    group: str = ""
    #: Whether a telephone always shows it.
    docked: bool = False


def first_path(role: MerchantRole, env: Environment) -> str:
    """The overview; a cashier, who does not see what the shop takes in, begins at the cash desk."""
    return "" if may_as_merchant(role, "overview.view", env) else "/cash-desk"


class ConsoleRequest(PageRequest):
    """`secret`, `session` and `user` are None together: nobody is signed in. `places`: the merchants that the user
    works for, with the role. `state`: what the session may do; `menu`: the entries of the menu of this page;
    `typed`: the fields of the form that was sent."""

    def __init__(self, console: Console, request: Request) -> None:
        settings = console.ctx.settings
        super().__init__(request, console.renderer, console.base_path, settings.time_zone)
        self.console = console
        self.secret: str | None = None
        self.session: Session | None = None
        self.user: User | None = None
        self.places: list[tuple[MerchantRole, Merchant]] = []
        self.state: SessionState = "open"
        self.menu: list[MenuEntry] = []
        self.typed: dict[str, str] = {}
        self._own_currency: Currency | None = None

    @classmethod
    async def begin(cls, console: Console, request: Request) -> Self:
        page_request = cls(console, request)
        secret = console.cookies.session(request)
        if secret is not None and is_secret(secret):
            found = await sessions.find(console.ctx.db, secret, console.ctx.clock.now())
            if found is not None:
                page_request._sign_in(secret, *found)
        request.scope[PAGE_REQUEST] = page_request
        return page_request

    def _sign_in(self, secret: str, session: Session, user: User, places: list[tuple[MerchantRole, Merchant]]) -> None:
        self.secret, self.session, self.user, self.places = secret, session, user, places
        if self.chosen_language is None and user.language in i18n.LANGUAGES:
            self.language = user.language
        self.state = state_of(session, user, tuple(role for role, _ in places))

    @property
    def signed_in(self) -> tuple[Session, User]:
        """Only where `app.py` has made sure that somebody is."""
        assert self.session is not None
        assert self.user is not None
        return self.session, self.user

    @property
    def person(self) -> User:
        """Who is signed in."""
        return self.signed_in[1]

    @property
    def actor(self) -> Actor:
        """As the audit log names who is signed in."""
        return Actor(self.person.email, "console")

    @property
    def ctx(self) -> AppContext:
        return self.console.ctx

    @property
    def db(self) -> Database:
        return self.console.ctx.db

    def now(self) -> Instant:
        return self.console.ctx.clock.now()

    def browser(self) -> Browser:
        address = self.console.addresses.counted(self.http.scope)
        agent = "".join(character for character in self.http.headers.get("user-agent", "") if character.isprintable())
        cookies = self.console.cookies
        return Browser(address, agent, cookies.device(self.http), cookies.passkey(self.http))

    @property
    def is_from_this_machine(self) -> bool:
        """Whether a browser on this machine asks. A proxy or tunnel on this machine says that it asks for another."""
        client, headers = self.http.client, self.http.headers
        proxied = "x-forwarded-for" in headers or "forwarded" in headers
        return client is not None and client.host in ("127.0.0.1", "::1") and not proxied

    async def form(self, model: type[Form]) -> Form:
        """The posted form. Raises FormRefused unless a page of ours sent it, in this session if there is one, and
        NotFound if it names a row by what is no id."""
        return model.read(await self.fields())

    async def fields(self) -> dict[str, str]:
        """The same, for a form whose fields are not known beforehand."""
        form = await read_form(self.http)
        self._check_token(form)
        self.typed = form
        return form

    async def upload(self, most: int) -> Upload:
        """The posted form with a file of at most `most` bytes. Raises FormRefused as `form` does, before any of the
        file is kept, and UploadTooLarge. The address must be one where the port takes so much
        (`server/connection_limits.py`)."""
        posted = await read_upload(self.http, most, self._check_token)
        self.typed = posted.fields
        return posted

    def _check_token(self, form: dict[str, str]) -> None:
        if is_from_elsewhere(self.http, self.console.public_url):
            raise FormRefused
        if self.secret is not None and not form_tokens.is_of(self.secret, form.get("csrf", "")):
            raise FormRefused

    @property
    def csrf(self) -> str:
        """A token for the forms of this page, empty without a session."""
        return form_tokens.issue(self.secret) if self.secret is not None else ""

    def at(self, path: str, **query: str | None) -> str:
        """The address of a page of the console."""
        return self.href(ROOT + path, **query)

    def at_admin(self, path: str, **query: str | None) -> str:
        """The address of a page of the back office."""
        return self.href(ADMIN_ROOT + path, **query)

    def first_page(self, role: MerchantRole, merchant: Merchant) -> str:
        """Where a person's work with a merchant begins: one that may not take money yet has nothing but tests."""
        env: Environment = "test" if merchant.status == "pending" else "live"
        return self.at(f"/{merchant.id}/{env}{first_path(role, env)}")

    def amount(self, hundredths: int, currency: Currency) -> str:
        """An amount as the reader of this page writes it."""
        return formatting.amount(hundredths, currency, self.language, coded=self.is_foreign(currency))

    def operator_name(self, operator: str) -> str:
        """`MTN MoMo · Bénin`, of the installation's catalogue."""
        return self.ctx.catalogues.base.name_of(operator)

    def is_foreign(self, currency: str | None) -> bool:
        """Whether it is another one than that of the merchant whose page this is, so that its code is written."""
        return currency != self._own_currency

    def belongs_to(self, merchant: Merchant) -> None:
        super().belongs_to(merchant)
        self._own_currency = merchant.currency

    def charged(self, payment: Payment) -> str:
        """What the customer is debited: whole units if the currency has no decimals (D27)."""
        return self.amount(round_to_currency(payment.total_amount, payment.currency), payment.currency)

    def day(self, day: date) -> str:
        """`3 octobre 2026`."""
        return formatting.long_date(day, self.language)

    def month(self, year: int, month: int) -> str:
        """`octobre 2026`."""
        return formatting.month(year, month, self.language)

    def said(self, message: Answer | None) -> Markup:
        """What Guichet has to say, in the reader's language (`console/messages.py`)."""
        return said(self, message)

    def refused(self, refusal: ActRefused) -> FormFault:
        """An act that the rules do not allow, as a fault of its form."""
        return FormFault(self.said(refusal.message), 409)

    def word(self, prefix: str, value: str) -> str:
        """A status or another word of ours in the reader's language: the text `prefix` and `value`."""
        return word(self, prefix, value)

    def stated(self, amount: int | float | str | None, currency: str | None) -> str:
        """An amount in the main unit, as a provider or a command states it."""
        return formatting.stated_amount(amount, currency, self.language, coded=self.is_foreign(currency))

    def show(self, template: str, status: int = 200, **view: Any) -> Response:
        """What surrounds every page: the person, the way out, the token of forms, what was just done."""
        view = {**view, **self.chrome()}
        response = self.render(template, SimpleNamespace(**view), status)
        if view["just_done"] is not None:
            self.console.cookies.forget_done(response)
        return response

    def done(self, url: str, act: str, **facts: str) -> Response:
        """After an act: the page at `url` says what was done, in the text `done.` and `act`. This is the one way."""
        response = self.redirect(url)
        self.console.cookies.set_done(response, urlencode({"act": act, **facts}))
        return response

    def _just_done(self) -> Markup | None:
        """None also for what no version of ours says: a cookie is whatever a browser sends."""
        try:
            facts = dict(parse_qsl(self.console.cookies.done(self.http) or "", max_num_fields=_MOST_FACTS))
            key = f"done.{facts.pop('act', '')}"
            shown = {name: printable(fact) for name, fact in facts.items()}
            return self.text(key, **shown) if self.renderer.has(key) else None
        except (KeyError, ValueError):
            return None

    def page(self, template: str, view: View, fault: FormFault | None = None, **frame: Any) -> Response:
        """A page: the fields of its view; what is wrong with the form that was sent, beside what
        was typed. `frame`: what a group of pages shows around each of them."""
        values = structs.asdict(view)
        form = {"fault": fault.text if fault else None, "typed": self.typed if fault else {}}
        return self.show(template, fault.status if fault else 200, **{**form, **values, **frame})

    def chrome(self) -> dict[str, Any]:
        return {
            "csrf": self.csrf,
            "user": self.user if self.state == "open" else None,
            "signed_in": self.user,
            "places": self.places,
            "first_page": self.first_page,
            "at": self.at,
            "at_admin": self.at_admin,
            "member": None,
            "menu": self.menu,
            "environments": (),
            "repeat": "repeat" in self.query,
            "just_done": self._just_done(),
            "chosen_language": self.chosen_language,
            "date_time": self.date_time,
            "amount": self.amount,
            "charged": self.charged,
            "said": self.said,
            "operator_name": self.operator_name,
            "word": self.word,
            "stated": self.stated,
            "plain": plain,
        }

    def sign_in_response(self, signed: SignedIn, to: str) -> Response:
        """Sends a person who just proved who they are to `to`, with the cookies."""
        response = self.redirect(to)
        self.set_cookies(response, signed)
        return response

    def set_cookies(self, response: Response, signed: SignedIn) -> None:
        self.console.cookies.set_session(response, signed.secret)
        if signed.device is not None:
            self.console.cookies.set_device(response, signed.device)

    def name_fault(self, typed: str, otherwise: str) -> Markup:
        """Why a name is refused: it holds an address, or the text `otherwise`."""
        return self.text("name.holds_address" if holds_address(typed[:_LONGEST_NAME]) else otherwise)

    def too_many(self, refused: TooManyAttempts) -> Markup:
        """What is said to somebody who has used up their attempts."""
        minutes = -(-refused.retry_after // 60)
        if minutes <= 60:
            return self.text("sign_in.too_many", minutes=minutes)
        return self.text("sign_in.too_many_today", hours=-(-minutes // 60))


class MerchantRequest(ConsoleRequest):
    """A page about one merchant, in one environment. `environments`: the switch between live and test."""

    def __init__(self, console: Console, request: Request) -> None:
        super().__init__(console, request)
        self._member: Member | None = None
        self.environments: list[MenuEntry] = []

    @property
    def member(self) -> Member:
        """The person as a member of the merchant's team, in the environment of the page."""
        assert self._member is not None
        return self._member

    def act_as(self, member: Member) -> None:
        self._member = member
        self.belongs_to(member.merchant)

    @property
    def merchant(self) -> Merchant:
        return self.member.merchant

    @property
    def env(self) -> Environment:
        return self.member.env

    @property
    def scope(self) -> tuple[MerchantId, Environment]:
        """Whose rows the page shows."""
        return self.merchant.id, self.env

    def may(self, right: MerchantRight) -> bool:
        return self.member.may(right)

    def require(self, right: MerchantRight) -> None:
        """Raises Forbidden, or SecondFactorNeeded for an act that needs a fresh one."""
        self.member.require(right, self.now())

    def here(self, path: str, env: Environment | None = None, **query: str | None) -> str:
        """The address of a page about the same merchant, in the same environment unless another is named."""
        member = self.member
        return self.href(f"{ROOT}/{member.merchant.id}/{env or member.env}{path}", **query)

    def chrome(self) -> dict[str, Any]:
        if self._member is None:
            return super().chrome()
        return {**super().chrome(), "member": self._member, "here": self.here, "environments": self.environments}


class StaffRequest(ConsoleRequest):
    """A page of the back office."""

    @property
    def member(self) -> StaffMember:
        """Raises Forbidden for a person who is not of the staff."""
        return staff_member(*self.signed_in)

    def may(self, right: StaffRight) -> bool:
        return self.member.may(right)

    def require(self, right: StaffRight) -> None:
        """Raises Forbidden, or SecondFactorNeeded for an act that needs a fresh one."""
        self.member.require(right, self.now())
