"""One request for a page of the console: who is signed in, the token of its forms, and what every page shows around its
content."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Self, TypeVar
from urllib.parse import parse_qsl, urlencode

from markupsafe import Markup
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from guichet.accounts import sessions
from guichet.accounts.errors import AccountError, PasswordWeak, TooBusy, TooManyAttempts
from guichet.accounts.rights import Member, StaffMember, staff_member
from guichet.accounts.sign_in import Browser, SessionState, SignedIn, state_of
from guichet.clock import Instant
from guichet.console import form_tokens
from guichet.console.console import ADMIN_ROOT, ROOT, Console
from guichet.console.cookies import DEVICE, DONE, PASSKEY, SESSION
from guichet.console.forms import form_token, new_form_token
from guichet.console.navigation import Navigation, first_path
from guichet.console.wording import Wording
from guichet.context import AppContext
from guichet.db.engine import Database
from guichet.domain.accounts import Session, User, is_secret
from guichet.domain.audit_log import Actor, ActRefused
from guichet.domain.errors import InvalidRequest
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment, Merchant
from guichet.domain.roles import MerchantRight, MerchantRole, StaffRight
from guichet.pages import i18n
from guichet.pages.fields import Fields
from guichet.pages.forms import is_from_elsewhere, read_form
from guichet.pages.uploads import Upload, read_upload
from guichet.pages.views import View
from guichet.printable import printable

Form = TypeVar("Form", bound=Fields)

#: Of what an act did.
_MOST_FACTS: Final = 8
#: Where Starlette's request keeps ours, for the page of an error: the menu is known, and nothing is read again.
PAGE_REQUEST: Final = "guichet.page_request"


class FormFault(Exception):
    """What is wrong with a form, for the person who sent it: its page is shown again. `at_fields`: sentences that stand
    beside a field."""

    def __init__(self, text: str, status: int = 422, at_fields: Mapping[str, Sequence[str]] | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.status = status
        self.at_fields = at_fields or {}


class FormRefused(AccountError):
    """The form was not sent by a page of ours, or by one of a session that ended."""


class ConsoleRequest(Wording):
    """`secret`, `session` and `user` are None together: nobody is signed in. `memberships`: the merchants that the user
    works for, with the role. `state`: what the session may do; `navigation`: what leads from this page to others;
    `form_values`: the fields of the form that was sent; `fault`: what is wrong with it, or with the address."""

    #: As whom the person sees the page of a merchant; None on any other page.
    membership: Member | None = None

    def __init__(self, console: Console, request: Request) -> None:
        super().__init__(console, request)
        self.secret: str | None = None
        self.session: Session | None = None
        self.user: User | None = None
        self.memberships: list[tuple[MerchantRole, Merchant]] = []
        self.state: SessionState = "open"
        self.navigation = Navigation()
        self.form_values: dict[str, str] = {}
        self.fault: FormFault | None = None

    @classmethod
    async def begin(cls, console: Console, request: Request) -> Self:
        page_request = cls(console, request)
        secret = console.cookies.read(request, SESSION)
        if secret is not None and is_secret(secret):
            open_session = await sessions.find(console.ctx.db, secret, console.ctx.clock.now())
            if open_session is not None:
                page_request._sign_in(secret, open_session)
        request.scope[PAGE_REQUEST] = page_request
        return page_request

    def _sign_in(self, secret: str, open_session: sessions.OpenSession) -> None:
        session, user, memberships = open_session
        self.secret, self.session, self.user, self.memberships = secret, session, user, memberships
        if self.chosen_language is None and user.language in i18n.LANGUAGES:
            self.language = user.language
        self.state = state_of(session, user, tuple(role for role, _ in memberships))

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
    def reader(self) -> User | None:
        """Whom the frame of the page names: nobody before they gave all factors."""
        return self.user if self.state == "open" else None

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
        return Browser(address, agent, cookies.read(self.http, DEVICE), cookies.read(self.http, PASSKEY))

    @property
    def is_from_this_machine(self) -> bool:
        """Whether a browser on this machine asks. A proxy or tunnel on this machine says that it asks for another."""
        client, headers = self.http.client, self.http.headers
        proxied = "x-forwarded-for" in headers or "forwarded" in headers
        return client is not None and client.host in ("127.0.0.1", "::1") and not proxied

    async def form(self, model: type[Form]) -> Form:
        """The posted form. Raises FormRefused unless a page of ours sent it, in this session if there is one,
        InvalidRequest for a value that none of our forms has, and NotFound if it names a row by an invalid id."""
        try:
            return model.read(await self.fields())
        except ValidationError:
            raise InvalidRequest from None

    async def fields(self) -> dict[str, str]:
        """The same, for a form whose fields are not known beforehand."""
        form = await read_form(self.http)
        self._check_token(form)
        self.form_values = form
        return form

    async def upload(self, most: int) -> Upload:
        """The posted form with a file of at most `most` bytes. Raises FormRefused as `form` does, before any of the
        file is kept, and UploadTooLarge. The address must be one where the port takes so much
        (`server/connection_limits.py`)."""
        posted = await read_upload(self.http, most, self._check_token)
        self.form_values = posted.fields
        return posted

    def _check_token(self, form: dict[str, str]) -> None:
        if is_from_elsewhere(self.http, self.console.public_url):
            raise FormRefused
        if self.secret is not None and not form_tokens.is_of(self.secret, form.get("csrf", "")):
            raise FormRefused

    def form_value(self, name: str, default: str = "") -> str:
        """What a field of a form holds: what was typed, on the page that says what is wrong with it."""
        return self.form_values.get(name, default) if self.fault else default

    def faults_at(self, field: str) -> Sequence[str]:
        return self.fault.at_fields.get(field, ()) if self.fault else ()

    @property
    def form_token(self) -> str:
        """For the hidden field `form`, so that a form counts once, however often it is sent: on the page that says what
        is wrong with one, the token that it has."""
        return form_token(self.form_values) or new_form_token()

    @cached_property
    def csrf(self) -> str:
        """A token for the forms of this page, empty without a session."""
        return form_tokens.issue(self.secret) if self.secret is not None else ""

    def console_url(self, path: str, **query: str | None) -> str:
        """The address of a page of the console."""
        return self.href(ROOT + path, **query)

    def admin_url(self, path: str, **query: str | None) -> str:
        """The address of a page of the back office."""
        return self.href(ADMIN_ROOT + path, **query)

    def first_page(self, role: MerchantRole, merchant: Merchant) -> str:
        """Where a person's work with a merchant begins: one that may not take money yet has nothing but tests."""
        env: Environment = "test" if merchant.status == "pending" else "live"
        return self.console_url(f"/{merchant.id}/{env}{first_path(role, env)}")

    def fault_of(self, error: ActRefused | AccountError) -> FormFault:
        """What was refused to the person, as a fault of the form that asked for it."""
        match error:
            case ActRefused():
                return FormFault(self.message_text(error.message), 409)
            case TooManyAttempts():
                return FormFault(self.too_many(error), 429)
            case TooBusy():
                return FormFault(self.text("sign_in.busy"), 503)
            case PasswordWeak():
                return FormFault(self.text(f"password.weak.{error.weakness}"))
        return FormFault(self.text("factor.refused"))

    def page(self, template: str, view: View | None = None, *, status: int | None = None, **values: Any) -> Response:
        """A page: its `view`, or `values` by their names where they are few; also those that a group of pages shows
        around each of them. No value has a name of the frame's (`layout.html`). `status`: by default that of the
        fault."""
        response = self.render(template, view, status or (self.fault.status if self.fault else 200), **values)
        if self.just_done is not None:
            self.console.cookies.forget(response, DONE)
        return response

    def done(self, url: str, act: str, **facts: str) -> Response:
        """After an act: the page at `url` says what was done, in the text `done.` and `act`. This is the one way."""
        response = self.redirect(url)
        self.console.cookies.set(response, DONE, urlencode({"act": act, **facts}))
        return response

    @cached_property
    def just_done(self) -> Markup | None:
        """What the act before did, shown once. None also for a value that no version of ours has set: a browser can
        send anything as a cookie."""
        done = self.console.cookies.read(self.http, DONE)
        if done is None:
            return None
        try:
            facts = dict(parse_qsl(done, max_num_fields=_MOST_FACTS))
            key = f"done.{facts.pop('act', '')}"
            texts = {name: printable(fact) for name, fact in facts.items()}
            return self.text(key, **texts) if self.renderer.has(key) else None
        except (KeyError, ValueError):
            return None

    def sign_in_response(self, signed: SignedIn, to: str) -> Response:
        """Sends a person who just proved who they are to `to`, with the cookies."""
        response = self.redirect(to)
        self.set_cookies(response, signed)
        return response

    def set_cookies(self, response: Response, signed: SignedIn) -> None:
        self.console.cookies.set(response, SESSION, signed.secret)
        if signed.device is not None:
            self.console.cookies.set(response, DEVICE, signed.device)


class MerchantRequest(ConsoleRequest):
    """A page about one merchant, in one environment."""

    @property
    def member(self) -> Member:
        """The person as a member of the merchant's team, in the environment of the page."""
        assert self.membership is not None
        return self.membership

    def act_as(self, member: Member) -> None:
        self.membership = member
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

    def merchant_url(self, path: str, env: Environment | None = None, **query: str | None) -> str:
        """The address of a page about the same merchant, in the same environment unless another is named."""
        member = self.member
        return self.href(f"{ROOT}/{member.merchant.id}/{env or member.env}{path}", **query)


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
