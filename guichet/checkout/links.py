"""The page of a payment link: who is paid and how, the form, the QR code (docs/contract.md, "States"; D30)."""

from dataclasses import dataclass
from typing import Final

import segno
from markupsafe import Markup
from starlette.responses import Response

from guichet.checkout import format as written
from guichet.checkout import forms, i18n, states
from guichet.checkout import otp_codes as codes
from guichet.checkout.fields import Attempt
from guichet.checkout.page_context import Desk
from guichet.checkout.page_request import Visit
from guichet.checkout.tokens import FormToken
from guichet.checkout.views import Group, bounds_notice, groups, initials
from guichet.db.engine import require
from guichet.domain.catalogue import Catalogue, PaymentMode
from guichet.domain.errors import Conflict, InvalidRequest, NotFound, PaymentFailed
from guichet.domain.merchants import Caller, Merchant
from guichet.domain.payment_links import PaymentLink
from guichet.ledger import wallets
from guichet.merchants import repository as merchants
from guichet.payments import link_repository as rows
from guichet.payments import repository as payments
from guichet.payments.create import PaymentRequest, create_payment

#: What became of a link's last use while somebody was filling in the form.
_MEANWHILE: Final = {"busy": "last_taken", "used_up": "last_done"}


@dataclass(frozen=True, slots=True)
class LinkView:
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

    @property
    def faulty(self) -> bool:
        return self.first_fault is not None


@dataclass(frozen=True, slots=True)
class PosterView:
    merchant: str
    label: str
    amount: str
    code: Markup
    address: str
    link_href: str


async def find(desk: Desk, visit: Visit) -> tuple[PaymentLink, Merchant]:
    """The link of this address and its merchant; NotFound when there is none."""
    first, second = visit.request.path_params["a"], visit.request.path_params["b"]
    link = await rows.by_token(desk.ctx.db, first + second) if (first + second).isascii() else None
    if link is None or link.path != f"{first}/{second}":
        raise NotFound
    return link, require(await merchants.get(desk.ctx.db, link.merchant_id))


async def show(desk: Desk, visit: Visit) -> Response:
    """GET: the page to pay on, or why there is nothing to pay."""
    link, merchant = await find(desk, visit)
    if state := await _closed(desk, link, merchant):
        return states.link_message(visit, state, link, merchant)
    attempt = Attempt(operator=visit.request.query_params.get("mode", "")[:32])
    return await _page(desk, visit, link, merchant, attempt)


async def pay(desk: Desk, visit: Visit) -> Response:
    """POST: starts the payment this form stands for, once, and shows its page; or only has a code texted."""
    link, merchant = await find(desk, visit)
    if forms.from_elsewhere(visit.request, desk.public_url):
        return states.link_message(visit, "elsewhere", link, merchant)
    form = await forms.read(visit.request)
    token = desk.tokens.read(link.token, form.get("token", ""))
    if token and await _already_paid(desk, link, token):
        return visit.redirect(visit.href(f"/pay/{link.path}/{token.nonce}"))
    if state := await _closed(desk, link, merchant):
        return states.link_message(visit, _MEANWHILE.get(state, state), link, merchant)
    return await _checked(desk, visit, link, merchant, form, token)


async def poster(desk: Desk, visit: Visit) -> Response:
    """The link as a QR code on a page made for printing."""
    link, merchant = await find(desk, visit)
    state = await _closed(desk, link, merchant)
    if state in ("expired", "used_up", "suspended"):
        return states.link_message(visit, state, link, merchant)
    address = f"{desk.public_url}/pay/{link.path}"
    code = segno.make(address, error="m", micro=False)
    drawn = code.svg_inline(border=4, omitsize=True, svgclass=None, lineclass=None, title=visit.say("qr.alt"))
    view = PosterView(
        merchant=merchant.name,
        label=link.description,
        amount=written.amount(link.amount, link.currency, visit.language),
        code=Markup(drawn),  # noqa: S704 - drawn from our own address
        address=address,
        link_href=visit.href(f"/pay/{link.path}"),
    )
    return visit.page("qr.html", view)


async def _checked(
    desk: Desk, visit: Visit, link: PaymentLink, merchant: Merchant, form: dict[str, str], token: FormToken | None
) -> Response:
    """The form with its faults, the form again once a code was asked for, or the payment."""
    catalogue = await desk.ctx.catalogues.of(merchant.id)
    mode = catalogue.by_operator(form.get("operator", "")[:32])
    if mode is None or not mode.active:
        return await _page(desk, visit, link, merchant, Attempt(), notice="link.notice_mode")
    checked = forms.check(visit, mode, form)
    attempt = Attempt(mode.operator, checked.typed, checked.faults)
    kept = form["token"] if token and token.fresh else None
    if codes.asked_for(mode, form):
        return await _code(desk, visit, link, merchant, mode, checked, kept)
    if checked.faults or token is None or kept is None:
        notice = "link.notice_faults" if checked.faults else "link.notice_again"
        return await _page(desk, visit, link, merchant, attempt, notice=notice, token=kept)
    try:
        await _start(desk, link, merchant, mode, checked.clean, token)
    except Conflict:
        link, merchant = await find(desk, visit)
        state = await _closed(desk, link, merchant) or "busy"
        return states.link_message(visit, _MEANWHILE.get(state, state), link, merchant)
    except InvalidRequest:
        return await _page(desk, visit, link, merchant, attempt, notice="link.notice_mode", token=kept)
    except PaymentFailed:
        pass  # it is recorded, and its page says why
    return visit.redirect(visit.href(f"/pay/{link.path}/{token.nonce}"))


async def _code(
    desk: Desk,
    visit: Visit,
    link: PaymentLink,
    merchant: Merchant,
    mode: PaymentMode,
    checked: forms.Checked,
    token: str | None,
) -> Response:
    """The same form again: a code is on its way, or why not."""
    attempt = Attempt(mode.operator, checked.typed, codes.needed(checked))
    if attempt.faults:
        return await _page(desk, visit, link, merchant, attempt, notice="code.notice", token=token)
    if token is None:
        return await _page(desk, visit, link, merchant, attempt, notice="link.notice_again")
    phone_number = checked.clean["phone_number"]
    if not await desk.codes.allows(desk.limiter.address(visit.request), phone_number):
        shown = codes.too_many(visit, attempt)
        answer = await _page(desk, visit, link, merchant, shown, notice="code.notice", token=token, status=429)
        answer.headers["Retry-After"] = str(codes.WINDOW * 60)
        return answer
    try:
        attempt, notice = await codes.ask(desk.ctx, visit, link, mode, phone_number, attempt)
    except InvalidRequest:
        notice = "link.notice_mode"
    return await _page(desk, visit, link, merchant, attempt, notice=notice, token=token)


async def _start(
    desk: Desk, link: PaymentLink, merchant: Merchant, mode: PaymentMode, clean: dict[str, str], token: FormToken
) -> None:
    order = PaymentRequest(
        amount=link.amount,
        currency=link.currency,
        operator=mode.operator,
        description=link.description,
        return_url=f"{desk.public_url}/pay/{link.path}/{token.nonce}",
        link_id=link.id,
        checkout_token=token.nonce,
        phone_number=clean.get("phone_number"),
        otp=clean.get("otp"),
        firstname=clean.get("firstname"),
        lastname=clean.get("lastname"),
        email=clean.get("email"),
    )
    await create_payment(desk.ctx, Caller(merchant, "live"), order)


async def _already_paid(desk: Desk, link: PaymentLink, token: FormToken) -> bool:
    """Whether this very form made a payment before: a double click, a reload, a page opened again."""
    payment = await payments.by_token(desk.ctx.db, token.nonce)
    return payment is not None and payment.link_id == link.id


async def _closed(desk: Desk, link: PaymentLink, merchant: Merchant) -> str | None:
    status = await wallets.wallet_status(desk.ctx.db, merchant.id, "live", link.currency)
    return states.closed(link, merchant, status, desk.clock.now())


async def _page(
    desk: Desk,
    visit: Visit,
    link: PaymentLink,
    merchant: Merchant,
    attempt: Attempt,
    *,
    notice: str | None = None,
    token: str | None = None,
    status: int = 422,
) -> Response:
    """The form; `notice` says what is wrong, and gives the page its `status`."""
    catalogue: Catalogue = await desk.ctx.catalogues.of(merchant.id)
    modes = catalogue.active()
    guessed = i18n.region(visit.request.headers.get("accept-language", ""))
    shown = groups(visit, modes, link.amount, link.currency, attempt, guessed, desk.public_url)
    faulty = [field.id for group in shown for mode in group.modes for field in mode.fields if field.faults]
    view = LinkView(
        merchant=merchant.name,
        monogram=initials(merchant.name),
        amount=written.amount(link.amount, link.currency, visit.language),
        label=link.description,
        expires=written.moment(link.expires_at, visit.language) if link.expires_at is not None else None,
        notice=visit.say(notice) if notice else None,
        first_fault=faulty[0] if faulty else None,
        bounds=bounds_notice(visit, shown, modes, link.currency),
        groups=shown,
        action=visit.href(f"/pay/{link.path}"),
        token=token or desk.tokens.mint(link.token),
    )
    return visit.page("link.html", view, status if notice else 200)
