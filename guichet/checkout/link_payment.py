"""Handles the form on the page of a link: it starts the payment, or requests a code by text message."""

from collections.abc import Mapping
from typing import Final

from msgspec import structs
from starlette.responses import Response

from guichet import metrics
from guichet.checkout import fields
from guichet.checkout.fields import IDENTITY, Checked, FormInput
from guichet.checkout.links import LinkRequest, find_link, form_page, offered
from guichet.checkout.page_context import PageContext
from guichet.checkout.payments import find_payment
from guichet.checkout.state_pages import StateName
from guichet.checkout.tokens import FormToken
from guichet.clock import MINUTE, SECOND, later
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.catalogue import PaymentMode
from guichet.domain.errors import Conflict, InvalidRequest, PaymentFailed, ServerError
from guichet.domain.merchants import Caller
from guichet.domain.payment_links import PaymentLink
from guichet.links.prompt_limits import LimitName, TooManyPrompts
from guichet.merchants.limits import OverMerchantLimit
from guichet.pages import formatting
from guichet.pages.forms import is_from_elsewhere, read_form
from guichet.pages.page_request import PageRequest
from guichet.payments import attempts, checkout_sessions
from guichet.payments import repository as payments
from guichet.payments.create import LinkUse, create_payment
from guichet.payments.otp_codes import CodeNotSent, send_code
from guichet.payments.polling import poll_for_page
from guichet.schemas.payment import Customer, PaymentBody

#: Name and value of the button that requests the code instead of paying.
BUTTON: Final = ("do", "code")
#: Reasons for which the sentence about a failed payment is used here too; others get the sentence `code.refused`.
_SHARED_REASONS: Final = frozenset(
    {"payer_not_found", "operator_unavailable", "configuration", "not_connected", "currency_not_accepted"}
)


def is_requested(mode: PaymentMode, form: dict[str, str]) -> bool:
    """Whether the customer pressed the button for a code."""
    name, value = BUTTON
    return mode.sends_code and form.get(name) == value


def phone_faults(checked: Checked) -> dict[str, list[str]]:
    """The faults of the phone number; only they prevent sending a code."""
    return {name: faults for name, faults in checked.faults.items() if name == "phone_number"}


async def request_code(
    ctx: AppContext, page: PageRequest, link: PaymentLink, mode: PaymentMode, phone_number: str, form_input: FormInput
) -> tuple[FormInput, str | None]:
    """Requests a code. Returns what the form shows now, and the key of a notice if no code was sent.

    Raises InvalidRequest when this mode cannot be used for this link.
    """
    if link.env == "test":  # Nobody is texted, and any code will do.
        return structs.replace(form_input, code_sent=page.text("code.test")), None
    try:
        await send_code(ctx, mode, phone_number, link.amount, link.currency, link.description)
    except CodeNotSent as failure:
        field, sentence = _fault(page, mode, failure.refusal)
        notice = "code.notice" if failure.refusal else "code.notice_unclear"
        return structs.replace(form_input, faults={field: [sentence]}), notice
    masked_phone = formatting.masked_phone(phone_number, mode.dial_code)
    return structs.replace(form_input, code_sent=page.text("code.sent", phone=masked_phone)), None


def _fault(page: PageRequest, mode: PaymentMode, reason: str | None) -> tuple[str, str]:
    """The field and the sentence that explain why no code was sent."""
    field = "phone_number" if reason == "payer_not_found" else "otp"
    if reason is None:
        return field, page.text("code.unclear")
    key = f"failure.{reason}" if reason in _SHARED_REASONS else "code.refused"
    return field, page.text(key, mode=mode.name)


#: The notice for a customer who was filling in the form when the link was paid or its last use was reserved.
_MEANWHILE: Final[Mapping[StateName, StateName]] = {"busy": "last_taken", "used_up": "last_done"}
#: The sentence about each limit of prompts.
_PROMPTS: Final[Mapping[LimitName, str]] = {
    "prompt-phone": "prompt.too_many_to_phone",
    "prompt-link": "prompt.too_many_of_link",
}


async def pay(pages: PageContext, page: PageRequest) -> Response:
    """POST: starts the payment of this form, once, and redirects to its page; or only requests a code."""
    return await _pay(await find_link(pages, page))


async def show_other(pages: PageContext, page: PageRequest) -> Response:
    """GET: the form for another attempt, with the same payment mode."""
    request = await _other(pages, page)
    if isinstance(request, Response):
        return request
    if state := await request.closed_state():
        return request.state_page(state)
    return await form_page(request, FormInput(operator=require(request.instead_of).operator))


async def pay_other(pages: PageContext, page: PageRequest) -> Response:
    """POST: starts another attempt, once."""
    request = await _other(pages, page)
    return request if isinstance(request, Response) else await _pay(request)


async def _other(pages: PageContext, page: PageRequest) -> LinkRequest | Response:
    """A request for another attempt in place of the payment that the path names. A redirect to the page of a payment
    where none may begin: it succeeded, one of the attempts can still be confirmed, or it failed and stands alone."""
    request = await find_link(pages, page)
    payment = await poll_for_page(pages.ctx, await find_payment(pages, page, request.link.id))
    if request.is_session:
        request = await find_link(pages, page)  # As it is after that.
        decisive = request.open_attempt
        return request if decisive is None else request.redirect_to_payment(require(decisive.checkout_token))
    begun = await attempts.attempts_of(pages.ctx.db, payment)
    decisive = attempts.current(pages.ctx, begun)
    if decisive is None and payment.status == "failed" and payment.attempt_of is None:
        decisive = payment
    if decisive is not None:
        return request.redirect_to_payment(require(decisive.checkout_token))
    keeps_place = any(attempt.status == "pending" and attempt.link_reserved_until is not None for attempt in begun)
    return structs.replace(request, instead_of=payment, keeps_place=keeps_place)


async def _pay(request: LinkRequest) -> Response:
    pages, page = request.pages, request.page
    if is_from_elsewhere(page.http, pages.public_url):
        return request.state_page("elsewhere")
    form = await read_form(page.http)
    token = pages.tokens.read(request.link.token, form.get("token", ""))
    if token and await _is_paid_already(request, token):
        return request.redirect_to_payment(token.nonce)
    if (request.instead_of is None or request.is_session) and (own := await request.own_payment()):
        return request.redirect_to_payment(require(own.checkout_token))
    if state := await request.closed_state():
        return request.state_page(_MEANWHILE.get(state, state))
    return await _handle_form(request, form, token)


async def _handle_form(request: LinkRequest, form: dict[str, str], token: FormToken | None) -> Response:
    """The form with its faults, the form after a code was requested, or a redirect to the payment."""
    catalogue = await request.pages.ctx.catalogues.of(request.merchant.id)
    mode = catalogue.by_operator(form.get("operator", "")[:32])
    if mode is None or mode not in offered(catalogue, request.link):
        return await form_page(request, FormInput(), notice="link.notice_mode")
    checked = fields.check(request.page, mode, form)
    kept = form["token"] if token and token.fresh else None
    if is_requested(mode, form):
        return await _send_code(request, mode, checked, kept)
    form_input = FormInput(mode.operator, checked.form_values, checked.faults)
    if checked.faults or token is None or kept is None:
        notice = "link.notice_faults" if checked.faults else "link.notice_again"
        return await form_page(request, form_input, notice=notice, token=kept)
    return await _pay_once(request, mode, form_input, checked.clean, token, kept)


async def _pay_once(
    request: LinkRequest, mode: PaymentMode, inputs: FormInput, clean: dict[str, str], token: FormToken, form_token: str
) -> Response:
    """A redirect to the payment, or what prevented it. `inputs` and `form_token` are for a form that is shown again."""
    try:
        await _start(request, mode, clean, token)
    except Conflict as conflict:
        return await _show_conflict(request, conflict)
    except TooManyPrompts as refused:
        metrics.RATE_LIMITED.labels(refused.limit).inc()
        wait = -(-(refused.retry_at - request.pages.clock.now()) // SECOND)
        return await _try_later(request, mode, inputs, "phone_number", _PROMPTS[refused.limit], wait, form_token)
    except OverMerchantLimit:
        return await form_page(request, inputs, notice="link.notice_limit", token=form_token)
    except InvalidRequest:
        return await form_page(request, inputs, notice="link.notice_mode", token=form_token)
    except (PaymentFailed, ServerError):
        pass  # The payment is stored as failed, and its page says why.
    return request.redirect_to_payment(token.nonce)


async def _show_conflict(request: LinkRequest, conflict: Conflict) -> Response:
    """A redirect to the payment that can still be confirmed, or the page that says why none may begin."""
    decisive = request.instead_of if isinstance(conflict, attempts.AttemptOpen) else None
    request = await find_link(request.pages, request.page)
    if request.is_session:  # Perhaps another browser's.
        decisive = request.open_attempt
    if decisive is not None:
        return request.redirect_to_payment(require(decisive.checkout_token))
    state = await request.closed_state() or "busy"
    return request.state_page(_MEANWHILE.get(state, state))


async def _send_code(request: LinkRequest, mode: PaymentMode, checked: fields.Checked, token: str | None) -> Response:
    """The same form, with a sentence that says that a code was sent or why not."""
    pages, page = request.pages, request.page
    form_input = FormInput(mode.operator, checked.form_values, phone_faults(checked))
    if form_input.faults:
        return await form_page(request, form_input, notice="code.notice", token=token)
    if token is None:
        return await form_page(request, form_input, notice="link.notice_again")
    phone_number = checked.clean["phone_number"]
    wait = await pages.limits.count_otp_code(page.http, phone_number, request.link.id)
    if wait is not None:
        return await _try_later(request, mode, form_input, "otp", "code.too_many", wait, token)
    notice: str | None
    try:
        form_input, notice = await request_code(pages.ctx, page, request.link, mode, phone_number, form_input)
    except InvalidRequest:
        notice = "link.notice_mode"
    return await form_page(request, form_input, notice=notice, token=token)


async def _try_later(
    request: LinkRequest,
    mode: PaymentMode,
    form_input: FormInput,
    field: str,
    sentence: str,
    seconds: int,
    token: str | None,
) -> Response:
    """429: the same form, with a sentence beside `field` that says from when on it can be sent again."""
    page = request.page
    # The page shows whole minutes.
    retry_at = later(request.pages.clock.now(), max(1, seconds) * SECOND + MINUTE)
    moment = page.date_time(retry_at)
    refused = structs.replace(form_input, faults={field: [page.text(sentence, moment=moment)]})
    notice = "code.notice" if field == "otp" else "prompt.notice"
    response = await form_page(request, refused, notice=notice, token=token, status=429)
    response.headers["Retry-After"] = str(max(1, seconds))
    return response


async def _start(request: LinkRequest, mode: PaymentMode, clean: dict[str, str], token: FormToken) -> None:
    link = request.link
    customer = checkout_sessions.known_customer(link) | {name: clean[name] for name in IDENTITY if name in clean}
    request_body = PaymentBody.model_construct(
        amount=link.amount,
        currency=link.currency,
        operator=mode.operator,
        description=link.description,
        # The provider leads back to our page, and that to the merchant's.
        return_url=f"{request.pages.public_url}/pay/{link.path}/{token.nonce}",
        metadata=link.metadata,
        phone_number=clean.get("phone_number"),
        otp=clean.get("otp"),
        customer=Customer.model_construct(**customer),
    )
    caller = Caller(request.merchant, link.env)
    await create_payment(request.pages.ctx, caller, request_body, LinkUse(link, token.nonce, request.instead_of))


async def _is_paid_already(request: LinkRequest, token: FormToken) -> bool:
    """Whether this form has created its payment already: after a double click or a reload."""
    payment = await payments.by_token(request.pages.ctx.db, token.nonce)
    return payment is not None and payment.link_id == request.link.id
