"""Where webhooks go: the address, the secret that signs them, and a test event."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts.rights import Member
from guichet.console.visit import Visit
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


async def show(visit: Visit, acting: Member) -> Response:
    return await _page(visit, acting)


async def change(visit: Visit, acting: Member) -> Response:
    """Sets or disables the address, shows or changes the secret, sends a test event."""
    form = await visit.form()
    match form.get("act"):
        case "configure":
            return await _configure(visit, acting, form.get("url", "").strip())
        case "disable":
            return await _set_url(visit, acting, None)
        case "show_secret":
            return await _show_secret(visit, acting)
        case "rotate":
            return await _rotate(visit, acting)
        case "test":
            return await _send_test(visit, acting, form.get("event", WEBHOOK_TEST))
        case _:
            raise InvalidRequest


async def _configure(visit: Visit, acting: Member, typed: str) -> Response:
    try:
        body = validate(EndpointBody, {"url": typed}, {"development": visit.console.ctx.settings.development})
    except InvalidRequest:
        return await _page(visit, acting, 422, visit.text("webhooks.bad_url"), typed=typed)
    return await _set_url(visit, acting, body.url)


async def _set_url(visit: Visit, acting: Member, url: str | None) -> Response:
    ctx = visit.console.ctx
    now = ctx.clock.now()
    acting.require("webhooks.configure", now)
    whose = (acting.merchant.id, acting.env)
    await endpoints.configure(ctx.db, ctx.vault, *whose, url, now, rotate=False, actor=acting.actor)
    if url is None:
        return visit.redirect(visit.here("/webhooks", done="disabled"))
    # Looked up once, here: the page itself must not make us resolve names, however often it is loaded.
    found = await endpoints.warnings_about(ctx.http_client, url)
    return visit.redirect(visit.here("/webhooks", done="saved", warning=found[0].code if found else None))


async def _show_secret(visit: Visit, acting: Member) -> Response:
    ctx = visit.console.ctx
    now = ctx.clock.now()
    acting.require("webhooks.secret", now)
    secret = await endpoints.reveal_secret(ctx.db, ctx.vault, acting.merchant.id, acting.env, acting.actor, now)
    return await _page(visit, acting, secret=secret)


async def _rotate(visit: Visit, acting: Member) -> Response:
    ctx = visit.console.ctx
    now = ctx.clock.now()
    acting.require("webhooks.secret", now)
    await endpoints.rotate_secret(ctx.db, ctx.vault, acting.merchant.id, acting.env, acting.actor, now)
    return visit.redirect(visit.here("/webhooks", done="rotated"))


async def _send_test(visit: Visit, acting: Member, named: str) -> Response:
    ctx = visit.console.ctx
    acting.require("webhooks.resend", ctx.clock.now())
    event = next((event for event in _events(acting) if event == named), None)
    if event is None:
        raise InvalidRequest
    if event != WEBHOOK_TEST:
        try:
            await cause(ctx, acting.merchant, event)
        except (ActRefused, GuichetError):
            return await _page(visit, acting, 409, visit.text("webhooks.no_test_payment"))
        return visit.redirect(visit.here("/webhooks/deliveries"))
    whose = (acting.merchant.id, acting.env)
    delivery = await endpoints.queue_test(ctx.db, *whose, ctx.clock.now(), acting.actor)
    if delivery is None:
        return await _page(visit, acting, 409, visit.text("webhooks.no_address"))
    ctx.wakeups.deliveries.set()
    return visit.redirect(visit.here(f"/webhooks/deliveries/{delivery.reference}"))


def _events(acting: Member) -> tuple[EventName, ...]:
    """What can be tried: in live only the event that tells of no payment."""
    return (WEBHOOK_TEST,) if acting.env == "live" else (WEBHOOK_TEST, *(e for e in EVENT_NAMES if e != WEBHOOK_TEST))


async def _page(
    visit: Visit, acting: Member, status: int = 200, fault: Any = None, *, typed: str | None = None, secret: str = ""
) -> Response:
    ctx = visit.console.ctx
    endpoint = await merchants.endpoint(ctx.db, acting.merchant.id, acting.env)
    done = visit.request.query_params.get("done")
    warning = visit.request.query_params.get("warning")
    _, failed = await deliveries.page(ctx.db, acting.merchant.id, acting.env, 1, 0, DeliveryFilter("failed"))
    return visit.show(
        "webhooks/endpoint.html",
        status,
        fault=fault,
        url=endpoint.url,
        typed=endpoint.url if typed is None else typed,
        secret=secret,
        done=done if done in ("saved", "disabled", "rotated") else None,
        warnings=[code for code in _WARNINGS if done == "saved" and code == warning],
        events=_events(acting),
        failed=failed,
        may_configure=acting.may("webhooks.configure"),
        may_see_secret=acting.may("webhooks.secret"),
        may_send=acting.may("webhooks.resend"),
    )
