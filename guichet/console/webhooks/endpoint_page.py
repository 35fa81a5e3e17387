"""Where webhooks go: the address, the secret that signs them, and a test event."""

from typing import Any, Final

from starlette.responses import Response

from guichet.console.page_request import MerchantRequest
from guichet.domain.audit_log import ActRefused
from guichet.domain.errors import GuichetError, InvalidRequest
from guichet.domain.events import EVENT_NAMES, WEBHOOK_TEST, EventName
from guichet.domain.warnings import WarningCode
from guichet.merchants import repository as merchants
from guichet.sandbox.events import cause
from guichet.schemas.validation import validate
from guichet.schemas.webhook_endpoint import EndpointBody
from guichet.webhooks import deliveries, endpoints
from guichet.webhooks.deliveries import DeliveryFilter

#: What `endpoints.warnings_about` says, each with a text `webhooks.warning.` and its name.
_WARNINGS: Final[tuple[WarningCode, ...]] = ("webhook_address_not_public", "webhook_host_not_resolvable")


async def show(request: MerchantRequest) -> Response:
    return await _page(request)


async def change(request: MerchantRequest) -> Response:
    """Sets or disables the address, shows or changes the secret, sends a test event."""
    form = await request.form()
    match form.get("act"):
        case "configure":
            return await _configure(request, form.get("url", "").strip())
        case "disable":
            return await _set_url(request, None)
        case "show_secret":
            return await _show_secret(request)
        case "rotate":
            return await _rotate(request)
        case "test":
            return await _send_test(request, form.get("event", WEBHOOK_TEST))
        case _:
            raise InvalidRequest


async def _configure(request: MerchantRequest, typed: str) -> Response:
    try:
        body = validate(EndpointBody, {"url": typed}, {"development": request.ctx.settings.development})
    except InvalidRequest:
        return await _page(request, 422, request.text("webhooks.bad_url"), typed=typed)
    return await _set_url(request, body.url)


async def _set_url(request: MerchantRequest, url: str | None) -> Response:
    ctx = request.ctx
    now = ctx.clock.now()
    request.require("webhooks.configure")
    whose = (request.merchant.id, request.env)
    await endpoints.configure(ctx.db, ctx.vault, *whose, url, now, rotate=False, actor=request.actor)
    if url is None:
        return request.redirect(request.here("/webhooks", done="disabled"))
    # Looked up once, here: the page itself must not make us resolve names, however often it is loaded.
    found = await endpoints.warnings_about(ctx.http_client, url)
    return request.redirect(request.here("/webhooks", done="saved", warning=found[0].code if found else None))


async def _show_secret(request: MerchantRequest) -> Response:
    ctx = request.ctx
    now = ctx.clock.now()
    request.require("webhooks.secret")
    secret = await endpoints.reveal_secret(ctx.db, ctx.vault, request.merchant.id, request.env, request.actor, now)
    return await _page(request, secret=secret)


async def _rotate(request: MerchantRequest) -> Response:
    ctx = request.ctx
    now = ctx.clock.now()
    request.require("webhooks.secret")
    await endpoints.rotate_secret(ctx.db, ctx.vault, request.merchant.id, request.env, request.actor, now)
    return request.redirect(request.here("/webhooks", done="rotated"))


async def _send_test(request: MerchantRequest, named: str) -> Response:
    ctx = request.ctx
    request.require("webhooks.resend")
    event = next((event for event in _events(request) if event == named), None)
    if event is None:
        raise InvalidRequest
    if event != WEBHOOK_TEST:
        try:
            await cause(ctx, request.merchant, event)
        except (ActRefused, GuichetError):
            return await _page(request, 409, request.text("webhooks.no_test_payment"))
        return request.redirect(request.here("/webhooks/deliveries"))
    whose = (request.merchant.id, request.env)
    delivery = await endpoints.queue_test(ctx.db, *whose, ctx.clock.now(), request.actor)
    if delivery is None:
        return await _page(request, 409, request.text("webhooks.no_address"))
    ctx.wakeups.deliveries.set()
    return request.redirect(request.here(f"/webhooks/deliveries/{delivery.reference}"))


def _events(request: MerchantRequest) -> tuple[EventName, ...]:
    """What can be tried: in live only the event that tells of no payment."""
    return (WEBHOOK_TEST,) if request.env == "live" else (WEBHOOK_TEST, *(e for e in EVENT_NAMES if e != WEBHOOK_TEST))


async def _page(
    request: MerchantRequest, status: int = 200, fault: Any = None, *, typed: str | None = None, secret: str = ""
) -> Response:
    ctx = request.ctx
    endpoint = await merchants.endpoint(ctx.db, request.merchant.id, request.env)
    done = request.query.get("done")
    warning = request.query.get("warning")
    _, failed = await deliveries.page(ctx.db, request.merchant.id, request.env, 1, 0, DeliveryFilter("failed"))
    return request.show(
        "webhooks/endpoint.html",
        status,
        fault=fault,
        url=endpoint.url,
        typed=endpoint.url if typed is None else typed,
        secret=secret,
        done=done if done in ("saved", "disabled", "rotated") else None,
        warnings=[code for code in _WARNINGS if done == "saved" and code == warning],
        events=_events(request),
        failed=failed,
        may_configure=request.may("webhooks.configure"),
        may_see_secret=request.may("webhooks.secret"),
        may_send=request.may("webhooks.resend"),
    )
