"""Wallets of merchants, their movements and monthly statements as the merchant's own console shows them, and our
balances with the providers. Reopening a wallet moves money: another person approves."""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from starlette.responses import Response

from guichet.accounts import approvals
from guichet.back_office import merchants, provider_balances
from guichet.back_office.money_acts import wallet_subject
from guichet.back_office.provider_balances import BalanceRead, StoredBalance
from guichet.console.admin.merchants.of_merchant import merchant_of
from guichet.console.admin.reads import MOST_TYPED, record_read
from guichet.console.balance.balance_page import MovementsView, WalletQuery, movements_view
from guichet.console.balance.documents import month_document
from guichet.console.forms import ReasonForm
from guichet.console.page_request import FormFault, StaffRequest
from guichet.domain.approvals import ActRequest
from guichet.domain.audit_log import CONSOLE, Facts
from guichet.domain.errors import NotFound
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment, Merchant
from guichet.domain.money import Currency, Hundredths
from guichet.domain.posting_rules import ACTIVE, CLOSED, WALLET_STATUSES, WalletStatus
from guichet.ledger import wallets
from guichet.ledger.balance_checkpoints import WalletKey
from guichet.merchants import repository as merchant_repository
from guichet.pages.fields import Lenient, row_id
from guichet.pages.views import View


class FloatRow(View, frozen=True):
    """Our balance in one wallet of an account; None of an account that was never read. `read`: how the last reading of
    the account ended, in its first row alone."""

    account: str
    balance: StoredBalance | None
    read: BalanceRead | None


class WalletsView(View, frozen=True):
    """`floats`: our balances, by provider; `names`: of merchants."""

    frozen: list[tuple[MerchantId, Environment, Currency, WalletStatus]]
    floats: dict[str, list[FloatRow]]
    merchant: str
    names: dict[MerchantId, str]


async def show_list(request: StaffRequest) -> Response:
    """What is not `Actif`, and the balances with the providers; `?merchant=` leads to the wallets of one."""
    merchant_text = request.query.get("merchant", "").strip()
    if (number := row_id(merchant_text)) is not None:
        return request.redirect(request.admin_url(f"/wallets/{number}"))
    frozen = await wallets.not_active(request.db)
    view = WalletsView(
        frozen=frozen,
        floats=await _floats(request),
        merchant=merchant_text[:MOST_TYPED],
        names=await merchant_repository.names(request.db, {merchant_id for merchant_id, *_ in frozen}),
    )
    if merchant_text:
        request.fault = FormFault(request.text("operations.merchant_wrong"))
    return request.page("admin/operations/wallets.html", view)


async def _floats(request: StaffRequest) -> dict[str, list[FloatRow]]:
    """An account that is in the file no more stands by itself."""
    balances: dict[str, list[StoredBalance]] = defaultdict(list)
    for balance in await provider_balances.stored(request.db):
        balances[balance.provider_account].append(balance)
    reads = {read.provider_account: read for read in await provider_balances.reads(request.db)}
    accounts, floats = request.ctx.providers.accounts, defaultdict[str, list[FloatRow]](list)
    for account in sorted({*balances, *reads}):
        of_account: Sequence[StoredBalance | None] = balances.get(account) or [None]
        floats[accounts[account].provider if account in accounts else account] += [
            FloatRow(account, balance, None if number else reads.get(account))
            for number, balance in enumerate(of_account)
        ]
    return dict(sorted(floats.items()))


class WalletForm(ReasonForm):
    status: Lenient[WalletStatus] = None
    currency: Lenient[Currency] = None


async def show(request: StaffRequest) -> Response:
    merchant = await merchant_of(request)
    # Many a merchant is a person, and this is their money.
    await record_read(request, "wallet.viewed", "merchant", merchant.id, merchant.id)
    listed = await wallets.wallets_of(request.db, merchant.id)
    return request.page("admin/operations/wallet.html", merchant=merchant, wallets=listed, statuses=WALLET_STATUSES)


async def change(request: StaffRequest) -> Response:
    """Freezes a live wallet at once; reopening it is asked for, and closing it has a page of its own."""
    form = await request.form(WalletForm)
    ctx = request.ctx
    request.require("wallets.change")
    merchant, currency, reason = await merchant_of(request), form.currency, form.reason
    if form.status in (None, CLOSED) or currency is None or reason is None:
        raise FormFault(request.text("operations.reason_missing"))
    if form.status != ACTIVE:
        await merchants.change_status(ctx.db, ctx.clock, merchant.id, currency, form.status, request.actor, reason)
        return request.done(request.admin_url(f"/wallets/{merchant.id}"), "acted")
    act = ActRequest("wallet.reopen", wallet_subject(merchant.id, currency), {}, reason)
    approval = await approvals.ask(ctx, act, request.person, CONSOLE)
    return request.done(request.admin_url(f"/approvals/{approval.id}"), "asked")


class CloseView(View, frozen=True):
    """`held`: what the merchant owns besides the balance, for refunds that are under way and suspended credits."""

    merchant: Merchant
    currency: Currency
    wallet_status: WalletStatus
    balance: Hundredths
    held: Hundredths


async def show_close(request: StaffRequest) -> Response:
    """What a live wallet holds, before it is closed: of the account's currency unless the address names another.
    Raises NotFound for one that is closed."""
    merchant = await merchant_of(request)
    currency = WalletQuery.read(request.query).currency or merchant.currency
    await record_read(request, "wallet.viewed", "merchant", merchant.id, merchant.id)
    listed = await wallets.wallets_of(request.db, merchant.id)
    wallet = next((row for row in listed if (row.env, row.currency) == ("live", currency)), None)
    status, balance = (wallet.status, wallet.balance) if wallet else (ACTIVE, Hundredths(0))
    if status == CLOSED:
        raise NotFound
    held_amounts = await wallets.held(request.db, merchant.id, "live", currency)
    view = CloseView(merchant, currency, status, balance, held_amounts.total)
    return request.page("admin/operations/wallet_close.html", view)


async def close(request: StaffRequest) -> Response:
    form = await request.form(ReasonForm)
    request.require("wallets.change")
    ctx, merchant = request.ctx, await merchant_of(request)
    currency = WalletQuery.read(request.query).currency or merchant.currency
    if form.reason is None:
        raise FormFault(request.text("operations.reason_missing"))
    await merchants.change_status(ctx.db, ctx.clock, merchant.id, currency, CLOSED, request.actor, form.reason)
    return request.done(request.admin_url(f"/wallets/{merchant.id}"), "acted")


class StatementQuery(WalletQuery):
    """`month`: the PDF document of that one."""

    env: Lenient[Environment] = None
    month: str | None = None


class StatementView(View, frozen=True):
    """`hidden_fields`: what the forms send again of the address."""

    merchant: Merchant
    movements: MovementsView
    hidden_fields: dict[str, str]


async def show_statement(request: StaffRequest) -> Response:
    """Of the live wallet of the account's currency unless the address names another. Days are those of the merchant's
    time zone, so that both read the same figures."""
    query, merchant = StatementQuery.read(request.query), await merchant_of(request)
    request.belongs_to(merchant)
    wallet = WalletKey(merchant.id, query.env or "live", query.currency or merchant.currency)
    facts: Facts = {"env": wallet.env, "currency": wallet.currency}
    if query.month is not None:
        month, document = await month_document(request, merchant, wallet)
        await record_read(request, "wallet.viewed", "merchant", merchant.id, merchant.id, {**facts, "month": month})
        return document
    await record_read(request, "wallet.viewed", "merchant", merchant.id, merchant.id, facts)
    hidden_fields: dict[str, str] = {"env": wallet.env, "currency": wallet.currency}
    address = partial(request.admin_url, f"/wallets/{merchant.id}/statement", **hidden_fields)
    movements = await movements_view(request, query, wallet, merchant.created_at, address)
    view = StatementView(merchant, movements, hidden_fields)
    return request.page("admin/operations/wallet_statement.html", view)
