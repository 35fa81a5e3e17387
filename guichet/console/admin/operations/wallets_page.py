"""Wallets of merchants and our balances with the providers. Reopening a wallet moves money: another person approves."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts import approvals
from guichet.back_office import provider_balances, wallet_status
from guichet.back_office.money_acts import wallet_subject
from guichet.console.admin.merchants.of_merchant import merchant_of
from guichet.console.admin.reads import MOST_TYPED, record_read
from guichet.console.forms import reason_of
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.domain.approvals import WantedAct
from guichet.domain.audit_log import ActRefused
from guichet.domain.merchants import Merchant
from guichet.domain.money import CURRENCIES
from guichet.domain.posting_rules import ACTIVE, WALLET_STATUSES
from guichet.ledger import wallets
from guichet.pages.fields import row_id


async def show_list(request: StaffRequest) -> Response:
    """What is not `Actif`, and the balances with the providers; `?merchant=` leads to the wallets of one."""
    ctx = request.ctx
    wanted = request.query.get("merchant", "").strip()
    if (number := row_id(wanted)) is not None:
        return request.redirect(request.at_admin(f"/wallets/{number}"))
    reads = {each.provider_account: each for each in await provider_balances.reads(ctx.db)}
    view = {
        "frozen": await wallets.not_active(ctx.db),
        "balances": await provider_balances.stored(ctx.db),
        "reads": reads,
        "typed": wanted[:MOST_TYPED],
        "fault": request.text("operations.merchant_wrong") if wanted else None,
    }
    return request.show("admin/operations/wallets.html", 422 if wanted else 200, **view)


async def show(request: StaffRequest) -> Response:
    return await _page(request, await merchant_of(request))


async def change(request: StaffRequest) -> Response:
    """Freezes or closes a live wallet at once; reopening it is asked for."""
    form = await request.fields()
    ctx = request.ctx
    request.require("wallets.change")
    merchant = await merchant_of(request)
    status = next((each for each in WALLET_STATUSES if each == form.get("status")), None)
    currency = next((each for each in CURRENCIES if each == form.get("currency")), None)
    reason = reason_of(form)
    if status is None or currency is None or reason is None:
        return await _page(request, merchant, 422, request.text("operations.reason_missing"))
    if status != ACTIVE:
        await wallet_status.change_status(ctx.db, ctx.clock, merchant.id, currency, status, request.actor, reason)
        return request.redirect(request.at_admin(f"/wallets/{merchant.id}"))
    wanted = WantedAct("wallet.reopen", wallet_subject(merchant.id, currency), {}, reason)
    try:
        approval = await approvals.ask(ctx, wanted, request.person, approvals.CONSOLE)
    except ActRefused as refusal:
        return await _page(request, merchant, 409, refusal=refusal)
    return request.redirect(request.at_admin(f"/approvals/{approval.id}"))


async def _page(
    request: StaffRequest,
    merchant: Merchant,
    status: int = 200,
    fault: Any = None,
    refusal: ActRefused | None = None,
) -> Response:
    # Many a merchant is a person, and this is their money.
    await record_read(request, "wallet.viewed", "merchant", merchant.id, merchant.id)
    view = {
        "merchant": merchant,
        "wallets": await wallets.wallets_of(request.db, merchant.id),
        "statuses": WALLET_STATUSES,
        "may_change": request.may("wallets.change"),
    }
    return request.show("admin/operations/wallet.html", status, fault=fault, refusal=refusal, **view)


PAGES: Final = (
    StaffPage("/wallets", "wallets.view", show_list, menu="wallets"),
    StaffPage("/wallets/{merchant:row}", "wallets.view", show, change),
)
