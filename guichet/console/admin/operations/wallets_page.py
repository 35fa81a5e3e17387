"""Wallets of merchants and our balances with the providers. Reopening a wallet moves money: another person approves."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts import approvals
from guichet.accounts.rights import StaffMember
from guichet.back_office import provider_balances, wallet_status
from guichet.back_office.money_acts import wallet_subject
from guichet.console.admin.fields import MOST_TYPED, reason_of, row_number
from guichet.console.admin.merchants.of_merchant import merchant_of
from guichet.console.admin.reads import record_read
from guichet.console.sections import StaffPage
from guichet.console.visit import Visit
from guichet.domain.approvals import WantedAct
from guichet.domain.audit_log import ActRefused
from guichet.domain.merchants import Merchant
from guichet.domain.money import CURRENCIES
from guichet.domain.posting_rules import ACTIVE, WALLET_STATUSES
from guichet.ledger import wallets


async def show_list(visit: Visit, acting: StaffMember) -> Response:
    """What is not `Actif`, and the balances with the providers; `?merchant=` leads to the wallets of one."""
    ctx = visit.console.ctx
    wanted = visit.request.query_params.get("merchant", "").strip()
    if (number := row_number(wanted)) is not None:
        return visit.redirect(visit.at_admin(f"/wallets/{number}"))
    reads = {each.provider_account: each for each in await provider_balances.reads(ctx.db)}
    view = {
        "frozen": await wallets.not_active(ctx.db),
        "balances": await provider_balances.stored(ctx.db),
        "reads": reads,
        "typed": wanted[:MOST_TYPED],
        "fault": visit.text("operations.merchant_wrong") if wanted else None,
    }
    return visit.show("admin/operations/wallets.html", 422 if wanted else 200, **view)


async def show(visit: Visit, acting: StaffMember) -> Response:
    return await _page(visit, acting, await merchant_of(visit))


async def change(visit: Visit, acting: StaffMember) -> Response:
    """Freezes or closes a live wallet at once; reopening it is asked for."""
    form = await visit.form()
    ctx = visit.console.ctx
    acting.require("wallets.change", ctx.clock.now())
    merchant = await merchant_of(visit)
    status = next((each for each in WALLET_STATUSES if each == form.get("status")), None)
    currency = next((each for each in CURRENCIES if each == form.get("currency")), None)
    reason = reason_of(form)
    if status is None or currency is None or reason is None:
        return await _page(visit, acting, merchant, 422, visit.text("operations.reason_missing"))
    if status != ACTIVE:
        await wallet_status.change_status(ctx.db, ctx.clock, merchant.id, currency, status, acting.actor, reason)
        return visit.redirect(visit.at_admin(f"/wallets/{merchant.id}"))
    wanted = WantedAct("wallet.reopen", wallet_subject(merchant.id, currency), {}, reason)
    try:
        request = await approvals.ask(ctx, wanted, acting.user, approvals.CONSOLE)
    except ActRefused as refusal:
        return await _page(visit, acting, merchant, 409, refusal=refusal)
    return visit.redirect(visit.at_admin(f"/approvals/{request.id}"))


async def _page(
    visit: Visit,
    acting: StaffMember,
    merchant: Merchant,
    status: int = 200,
    fault: Any = None,
    refusal: ActRefused | None = None,
) -> Response:
    # Many a merchant is a person, and this is their money.
    await record_read(visit, acting, "wallet.viewed", "merchant", merchant.id, merchant.id)
    view = {
        "merchant": merchant,
        "wallets": await wallets.wallets_of(visit.console.ctx.db, merchant.id),
        "statuses": WALLET_STATUSES,
        "may_change": acting.may("wallets.change"),
    }
    return visit.show("admin/operations/wallet.html", status, fault=fault, refusal=refusal, **view)


PAGES: Final = (
    StaffPage("/wallets", "wallets.view", show_list, menu="wallets"),
    StaffPage("/wallets/{merchant:row}", "wallets.view", show, change),
)
