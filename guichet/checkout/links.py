"""The page of a payment link: who is paid and how, the form, the QR code (docs/contract.md, "States"; D30)."""

from msgspec import structs
from starlette.responses import Response

from guichet.checkout import state_pages
from guichet.checkout.fields import FormInput
from guichet.checkout.page_context import PageContext
from guichet.checkout.state_pages import StateName
from guichet.checkout.views import Group, bounds_notice, groups, initials
from guichet.domain.catalogue import Catalogue, PaymentMode
from guichet.domain.errors import NotFound
from guichet.domain.merchants import Merchant
from guichet.domain.payment_links import PaymentLink
from guichet.domain.payments import Payment
from guichet.domain.records import Record
from guichet.ledger import wallets
from guichet.links import repository as link_repository
from guichet.pages import formatting, i18n
from guichet.pages.page_request import PageRequest
from guichet.pages.qr_codes import qr_code
from guichet.payments import attempts, checkout_sessions
from guichet.payments import repository as payments
from guichet.printable import printable_label


class LinkRequest(Record, frozen=True):
    """A request for one of the pages of a link that exists."""

    pages: PageContext
    page: PageRequest
    link: PaymentLink
    merchant: Merchant
    #: The payment in whose place another one is begun; `keeps_place`: it, or one before it, has a use of the link.
    instead_of: Payment | None = None
    keeps_place: bool = False
    #: Of a checkout session: the payment that whoever opens it must see before there can be another.
    open_attempt: Payment | None = None

    @property
    def href(self) -> str:
        """The address of the link's own page."""
        return self.page.href(f"/pay/{self.link.path}")

    @property
    def is_session(self) -> bool:
        return self.link.session_reference is not None

    @property
    def form_href(self) -> str:
        """Where the form is sent."""
        before = self.instead_of
        return (
            self.href
            if before is None or self.is_session
            else self.page.href(f"/pay/{self.link.path}/{before.checkout_token}/other")
        )

    def redirect_to_payment(self, checkout_token: str) -> Response:
        """To the page of a payment through this link. A customer who scans the code again is led there, too."""
        response = self.page.redirect(self.page.href(f"/pay/{self.link.path}/{checkout_token}"))
        self.pages.cookie.set(response, self.link.token, checkout_token)
        return response

    async def own_payment(self) -> Payment | None:
        """What this browser began through this link and must see before it can pay: a payment that is pending, one that
        failed while another one of its attempts may still succeed, or the one that used the link up. Whichever browser
        opens a checkout session: it is one customer's."""
        if self.is_session:
            return self.open_attempt
        token = self.pages.cookie.read(self.page.http, self.link.token)
        payment = None if token is None else await payments.by_token(self.pages.ctx.db, token)
        if payment is None or payment.link_id != self.link.id:
            return None
        if payment.status in ("succeeded", "refunded"):
            return payment if self.link.uses_left == 0 else None
        return payment if payment.status == "pending" or payment.attempt_of is not None else None

    async def closed_state(self) -> StateName | None:
        """The state that keeps the link from being paid now; None if it can be."""
        wallet_status = await wallets.wallet_status(
            self.pages.ctx.db, self.merchant.id, self.link.env, self.link.currency
        )
        now = self.pages.clock.now()
        has_room = self.keeps_place or await link_repository.has_room(self.pages.ctx.db, self.link, now)
        return state_pages.closed_state(self.link, self.merchant, wallet_status, now, has_room=has_room)

    def state_page(self, state: StateName) -> Response:
        return state_pages.link_state_page(self.page, state, self.link, self.merchant)


class LinkView(Record, frozen=True):
    merchant: str
    monogram: str
    amount: str
    label: str
    expires: str | None
    notice: str | None
    #: The id of the first faulty field, for a link to it; None when nothing is faulty.
    first_fault: str | None
    bounds: str | None
    groups: list[Group]
    action: str
    token: str
    test: bool
    #: The merchant's page for a customer who does not want to pay.
    cancel_href: str | None = None


async def find_link(pages: PageContext, page: PageRequest) -> LinkRequest:
    """The link of this address and its merchant. Raises NotFound when there is none."""
    first, second = page.path["a"], page.path["b"]
    link = await link_repository.by_token(pages.ctx.db, first + second) if (first + second).isascii() else None
    if link is None or link.path != f"{first}/{second}":
        raise NotFound
    request = LinkRequest(pages, page, link, await pages.merchant(page, link.merchant_id))
    return await _with_attempts(request) if request.is_session else request


async def _with_attempts(request: LinkRequest) -> LinkRequest:
    """The next payment of a session is always in the place of the one before it, whoever began that."""
    ctx = request.pages.ctx
    begun = await checkout_sessions.payments_of(ctx, request.link)
    return structs.replace(
        request,
        instead_of=begun[0] if begun else None,
        keeps_place=any(attempt.status == "pending" and attempt.link_reserved_until is not None for attempt in begun),
        open_attempt=_paid_by(request.link, begun) or attempts.current(ctx, begun),
    )


async def show(pages: PageContext, page: PageRequest) -> Response:
    """GET: the page with the form, or a page that says why the link cannot be paid."""
    request = await find_link(pages, page)
    if own := await request.own_payment():
        return page.redirect(page.href(f"/pay/{request.link.path}/{own.checkout_token}"))
    if state := await request.closed_state():
        return request.state_page(state)
    return await form_page(request, FormInput(operator=page.query.get("mode", "")[:32]))


async def show_qr_code(pages: PageContext, page: PageRequest) -> Response:
    """GET: the link as a QR code, on a page made for printing."""
    request = await find_link(pages, page)
    link = request.link
    state = await request.closed_state()
    if state in ("expired", "used_up", "suspended"):
        return request.state_page(state)
    address = f"{pages.public_url}/pay/{link.path}"
    return page.render(
        "qr.html",
        merchant=request.merchant.name,
        label=printable_label(link.description),
        amount=formatting.amount(link.amount, link.currency, page.language),
        code=qr_code(address, page.text("qr.alt")),
        address=address,
        link_href=request.href,
        test=link.env == "test",
    )


def _paid_by(session: PaymentLink, begun: list[Payment]) -> Payment | None:
    return next((payment for payment in begun if payment.reference == session.payment_reference), None)


def offered(catalogue: Catalogue, link: PaymentLink) -> list[PaymentMode]:
    """The modes that a customer can choose."""
    only = None if link.operators is None else link.operators.split(",")
    return [mode for mode in catalogue.active() if only is None or mode.operator in only]


async def form_page(
    request: LinkRequest,
    form_input: FormInput,
    *,
    notice: str | None = None,
    token: str | None = None,
    status: int = 422,
) -> Response:
    """The form with the values of `form_input`; with a `notice` (the key of a sentence) the response has `status`.

    `token`: the form token to keep; None issues a new one.
    """
    pages, page, link = request.pages, request.page, request.link
    modes = offered(await pages.ctx.catalogues.of(request.merchant.id), link)
    if request.is_session:
        known = checkout_sessions.known_customer(link)
        form_input = structs.replace(form_input, values={**known, **form_input.values}, known=known)
    likely_country = i18n.region(page.http.headers.get("accept-language", ""))
    mode_groups = groups(page, modes, link.amount, link.currency, form_input, likely_country, pages.public_url)
    faulty = [field.id for group in mode_groups for mode in group.modes for field in mode.fields if field.faults]
    view = LinkView(
        merchant=request.merchant.name,
        monogram=initials(request.merchant.name),
        amount=formatting.amount(link.amount, link.currency, page.language),
        label=printable_label(link.description),
        expires=page.date_time(link.expires_at) if link.expires_at is not None else None,
        notice=page.text(notice) if notice else None,
        first_fault=faulty[0] if faulty else None,
        bounds=bounds_notice(page, mode_groups, modes, link.currency),
        groups=mode_groups,
        action=request.form_href,
        token=token or pages.tokens.issue(link.token),
        test=link.env == "test",
        cancel_href=link.cancel_url,
    )
    return page.render("link.html", view, status if notice else 200)
