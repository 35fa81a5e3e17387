"""Where webhooks go: the address, the secret that signs them, and a test event."""

from typing import Final

from starlette.responses import Response

from guichet.console.page_request import FormFault, MerchantRequest
from guichet.db.lists.pages import PageBounds
from guichet.domain.audit_log import ActRefused
from guichet.domain.errors import GuichetError, InvalidRequest
from guichet.domain.events import EVENT_NAMES, WEBHOOK_TEST, EventName
from guichet.merchants import repository as merchants
from guichet.pages.fields import Fields, choice
from guichet.sandbox.events import cause
from guichet.schemas.validation import validate
from guichet.schemas.webhook_endpoint import EndpointBody
from guichet.webhooks import delivery_log, endpoints
from guichet.webhooks.delivery_log import DeliveryFilter

#: What `endpoints.warnings_about` says, each with a text `webhooks.warning.` and its name.
_WARNINGS: Final = ("webhook_address_not_public",)


class EndpointForm(Fields):
    act: str = ""
    url: str = ""
    event: str = WEBHOOK_TEST


async def show(request: MerchantRequest, *, secret: str = "") -> Response:
    """`secret`: empty unless it was asked for."""
    endpoint = await merchants.endpoint(request.db, *request.scope)
    _, failed = await delivery_log.page(request.db, *request.scope, PageBounds(1), DeliveryFilter("failed"))
    return request.page(
        "webhooks/endpoint.html",
        url=endpoint.url,
        secret=secret,
        warning=choice(request.query.get("warning"), _WARNINGS),
        events=_events(request),
        failed=failed,
    )


async def change(request: MerchantRequest) -> Response:
    """Sets or disables the address, shows or changes the secret, sends a test event."""
    form = await request.form(EndpointForm)
    secrets_of = (request.db, request.ctx.vault, *request.scope)
    match form.act:
        case "configure":
            return await _set_url(request, _url(request, form.url.strip()))
        case "disable":
            return await _set_url(request, None)
        case "show_secret":
            request.require("webhooks.secret")
            secret = await endpoints.reveal_secret(*secrets_of, request.actor, request.now())
            return await show(request, secret=secret)
        case "rotate":
            request.require("webhooks.secret")
            await endpoints.rotate_secret(*secrets_of, request.actor, request.now())
            return request.done(request.merchant_url("/webhooks"), "rotated")
        case "test":
            request.require("webhooks.resend")
            address = await _send_test(request, choice(form.event, _events(request)))
            request.ctx.wakeups.deliveries.set()
            return request.redirect(address)
        case _:
            raise InvalidRequest


def _url(request: MerchantRequest, text: str) -> str | None:
    try:
        return validate(EndpointBody, {"url": text}, {"development": request.ctx.settings.development}).url
    except InvalidRequest:
        raise FormFault(request.text("webhooks.bad_url")) from None


async def _set_url(request: MerchantRequest, url: str | None) -> Response:
    request.require("webhooks.configure")
    ctx = request.ctx
    await endpoints.configure(ctx.db, ctx.vault, *request.scope, url, request.now(), rotate=False, actor=request.actor)
    if url is None:
        return request.done(request.merchant_url("/webhooks"), "disabled")
    # Looked up once, here: the page itself must not make us resolve names, however often it is loaded.
    warnings = await endpoints.warnings_about(ctx.http_client, url)
    return request.done(
        request.merchant_url("/webhooks", warning=warnings[0].code if warnings else None), "endpoint_set"
    )


async def _send_test(request: MerchantRequest, event: EventName | None) -> str:
    """The page on which the event can be followed. Raises FormFault, InvalidRequest."""
    if event is None:
        raise InvalidRequest
    if event != WEBHOOK_TEST:
        try:
            await cause(request.ctx, request.merchant, event)
        except (ActRefused, GuichetError):
            raise FormFault(request.text("webhooks.no_test_payment"), 409) from None
        return request.merchant_url("/webhooks/deliveries")
    delivery = await endpoints.queue_test(request.db, *request.scope, request.now(), request.actor)
    if delivery is None:
        raise FormFault(request.text("webhooks.no_address"), 409)
    return request.merchant_url(f"/webhooks/deliveries/{delivery.reference}")


def _events(request: MerchantRequest) -> tuple[EventName, ...]:
    """What can be tried: in live only the event that tells of no payment."""
    if request.env == "live":
        return (WEBHOOK_TEST,)
    return (WEBHOOK_TEST, *(event for event in EVENT_NAMES if event != WEBHOOK_TEST))
