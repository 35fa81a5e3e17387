"""What the pages of payments show of one payment; texts of merchants and customers without what a screen would obey."""

from collections.abc import Collection, Sequence
from typing import Any, Literal

from msgspec import structs

from guichet.console.own_sales import shows_payment
from guichet.console.page_request import MerchantRequest
from guichet.db.lists.pages import ListScope, read_rows
from guichet.db.references import parse_reference
from guichet.db.tables import payments
from guichet.disputes import repository as dispute_repository
from guichet.domain.catalogue import Catalogue
from guichet.domain.disputes import Dispute, refund_barrier
from guichet.domain.errors import NotFound
from guichet.domain.ids import PaymentId
from guichet.domain.money import round_to_currency
from guichet.domain.payments import Payment, PaymentStatus, PaymentSummary
from guichet.pages.formatting import full_phone
from guichet.pages.views import View
from guichet.payments import repository
from guichet.printable import printable
from guichet.schemas.payment import payment_identifier

#: A bank has the money and may return it (`open`), or gave it back to the customer (`lost`).
Contest = Literal["open", "lost"]


class PaymentRow(View, frozen=True):
    """A payment in a list. `href`: of its page. `customer`: the name, or None. `when`: it was made, as the page says
    it. `contest`: what its disputes make of it; None without one."""

    href: str
    status: str
    amount: str
    description: str
    external_id: str | None
    customer: str | None
    phone: str | None
    operator: str
    when: str
    contest: Contest | None


class PaymentView(PaymentRow, frozen=True):
    """`total`: what the operator debits."""

    reference: str
    number: str
    fee: str
    total: str


async def find_payment(request: MerchantRequest) -> Payment:
    """The payment that the address names. Raises NotFound, also for one of another merchant or environment, or of
    another cashier."""
    reference = parse_reference(request.path["reference"])
    payment = await repository.by_reference(request.db, *request.scope, reference) if reference else None
    if payment is None or not await shows_payment(request, payment):
        raise NotFound
    return payment


async def contested(request: MerchantRequest) -> Collection[PaymentId]:
    """The payments of this merchant that have an open dispute. Cost: one statement, bounded by the open disputes."""
    return {row.payment_id for row in await dispute_repository.open_of(request.db, *request.scope) if row.payment_id}


def contest_of(disputes: Sequence[Dispute]) -> Contest | None:
    barrier = refund_barrier(disputes)
    return "lost" if barrier == "dispute_lost" else "open" if barrier else None


async def listed(
    request: MerchantRequest, limit: int, status: PaymentStatus | None = None, **bounds: Any
) -> list[PaymentSummary]:
    """Payments of the merchant. `bounds`: see `read_rows`."""
    scope, columns = ListScope(*request.scope, status), PaymentSummary.__struct_fields__
    return [
        PaymentSummary(*row) for row in await read_rows(request.db, payments, scope, limit, columns=columns, **bounds)
    ]


def payment_row(
    request: MerchantRequest,
    payment: Payment | PaymentSummary,
    catalogue: Catalogue,
    when: str,
    contest: Contest | None = None,
) -> PaymentRow:
    mode = catalogue.by_operator(payment.operator)
    first, last = payment.firstname or "", payment.lastname or ""
    name = f"{first} {last}" if first and last else first or last
    return PaymentRow(
        href=request.merchant_url(f"/payments/{payment.reference}"),
        status=payment.status,
        amount=request.amount(payment.amount, payment.currency),
        description=printable(payment.description),
        external_id=None if payment.external_id is None else printable(payment.external_id),
        customer=printable(name) or None,
        phone=None if payment.phone_number is None else full_phone(payment.phone_number),
        operator=mode.name if mode else payment.operator,
        when=when,
        contest=contest,
    )


def payment_view(
    request: MerchantRequest, payment: Payment, catalogue: Catalogue, contest: Contest | None = None
) -> PaymentView:
    total = round_to_currency(payment.total_amount, payment.currency)
    return PaymentView(
        **structs.asdict(payment_row(request, payment, catalogue, request.date_time(payment.created_at), contest)),
        reference=payment.reference,
        number=payment_identifier(payment.id),
        fee=request.amount(total - payment.amount, payment.currency),
        total=request.amount(total, payment.currency),
    )
