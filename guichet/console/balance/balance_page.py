"""What a merchant has: the wallets with what is held, and the movements of one of them over a period, a page at a time,
newest first, which the staff read too."""

from collections.abc import Callable
from functools import partial
from typing import Final

from markupsafe import Markup
from starlette.responses import Response

from guichet.clock import Instant
from guichet.console.page_request import ConsoleRequest, FormFault, MerchantRequest
from guichet.domain.money import CURRENCIES, Currency
from guichet.domain.posting_rules import ACTIVE
from guichet.ledger import wallets
from guichet.ledger.balance_checkpoints import WalletKey
from guichet.ledger.monthly_statement import movement_name
from guichet.ledger.wallet_statement import Movement, newest_movements
from guichet.ledger.wallets import Held, held
from guichet.pages.days import PeriodFields, today
from guichet.pages.fields import Lenient
from guichet.pages.lists import Cursor, ListPage, Pager, Place
from guichet.pages.views import View

_PER_PAGE: Final = 25
#: Months whose statement a page offers.
_MONTHS: Final = 24


class WalletQuery(PeriodFields):
    currency: Lenient[Currency] = None
    before: Lenient[Place] = None


class WalletView(View, frozen=True):
    currency: Currency
    balance: str
    held: Markup | None
    suspended: bool


class MovementsView(View, frozen=True):
    """For `_movements.html`. `currencies` and `months`: pairs of a value and its text, to choose from.
    `rows`: each with the name of its kind, and the address of the payment's page where the reader has one."""

    query: WalletQuery
    currency: Currency
    currencies: list[tuple[str, str]]
    months: list[tuple[str, str]]
    rows: list[tuple[Movement, str, str | None]]
    pager: Pager


class BalanceView(View, frozen=True):
    wallets: list[WalletView]
    movements: MovementsView
    exports: str | None


async def show(request: MerchantRequest) -> Response:
    query = WalletQuery.read(request.query)
    views = await wallet_views(request)
    currency = query.currency or request.merchant.currency
    movements = await movements_view(
        request,
        query,
        WalletKey(*request.scope, currency),
        request.merchant.created_at,
        partial(request.merchant_url, "/balance", None, currency=currency),
        lambda reference: request.merchant_url(f"/payments/{reference}"),
        currency_options(views, currency),
    )
    exports = request.merchant_url("/exports") if request.may("exports.download") else None
    return request.page("balance/balance.html", BalanceView(views, movements, exports))


async def wallet_views(request: MerchantRequest) -> list[WalletView]:
    """The wallets of this environment; the one of the account's currency even if it never moved."""
    db = request.db
    own = {
        wallet.currency: wallet
        for wallet in await wallets.wallets_of(db, request.merchant.id)
        if wallet.env == request.env
    }
    views = []
    for currency in CURRENCIES:
        wallet = own.get(currency)
        if wallet is None and currency != request.merchant.currency:
            continue
        held_amounts = await held(db, request.merchant.id, request.env, currency)
        balance = request.amount(wallet.balance if wallet else 0, currency)
        suspended = wallet is not None and wallet.status != ACTIVE
        held_text = _held_text(request, held_amounts, currency) if held_amounts.total else None
        views.append(WalletView(currency, balance, held_text, suspended))
    return views


def _held_text(request: MerchantRequest, held_amounts: Held, currency: Currency) -> Markup:
    """As much as the overview says, and what it is for."""
    total = request.amount(held_amounts.total, currency)
    if not held_amounts.suspended:
        return request.text("balance.held", amount=total, count=held_amounts.refunds)
    part = request.amount(held_amounts.suspended, currency)
    return request.text("balance.held_suspended", amount=total, count=held_amounts.refunds, suspended=part)


def currency_options(views: list[WalletView], chosen: Currency) -> list[tuple[str, str]]:
    used = {chosen, *(view.currency for view in views)}
    return [(currency, currency) for currency in CURRENCIES if currency in used]


async def movements_view(
    request: ConsoleRequest,
    query: WalletQuery,
    wallet: WalletKey,
    created_at: Instant,
    address: Callable[..., str],
    payment_href: Callable[[str], str] | None = None,
    currencies: list[tuple[str, str]] | None = None,
) -> MovementsView:
    """`created_at`: of the account, whose whole life is shown unless days were typed; `address`: of the page with more
    of a query; `payment_href`: of the payment with this reference."""
    now, zone = request.now(), request.time_zone
    period = query.period(zone, (today(created_at, zone), today(now, zone)))
    if period.fault:
        request.fault = FormFault(request.text(f"balance.fault.{period.fault}"))
    rows = await newest_movements(request.db, wallet, period.since, period.until, _PER_PAGE + 1, now, query.before)
    page = ListPage.cut(rows, _PER_PAGE, Cursor(query.before))
    older = page.pager(lambda row: f"{row.at}.{row.posting_id}", partial(address, **query.query_values)).older
    return MovementsView(
        query=query,
        currency=wallet.currency,
        currencies=currencies or [],
        months=_months(request, created_at),
        rows=[
            (
                row,
                movement_name(row.cause, request.language),
                payment_href(row.payment_reference) if payment_href and row.payment_reference else None,
            )
            for row in page.rows
        ],
        pager=Pager(address(**query.query_values) if query.before else None, older),
    )


def _months(request: ConsoleRequest, created_at: Instant) -> list[tuple[str, str]]:
    """The months whose statement is offered: since the account was made, newest first."""
    last, first = today(request.now(), request.time_zone), today(created_at, request.time_zone)
    count = min(_MONTHS, (last.year - first.year) * 12 + last.month - first.month + 1)
    months = []
    for back in range(max(1, count)):
        year, month = divmod(last.year * 12 + last.month - 1 - back, 12)
        months.append((f"{year:04d}-{month + 1:02d}", request.month(year, month + 1)))
    return months
