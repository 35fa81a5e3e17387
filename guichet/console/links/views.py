"""What the pages of links and of the cash desk have in common: the link of an address, its state, its payments."""

from dataclasses import dataclass
from typing import Literal

from guichet.clock import Instant
from guichet.console.page_request import MerchantRequest
from guichet.domain.catalogue import Catalogue
from guichet.domain.errors import NotFound
from guichet.domain.ids import LinkId
from guichet.domain.merchants import Caller
from guichet.domain.payment_links import PaymentLink
from guichet.domain.payments import Payment
from guichet.links import repository as link_repository
from guichet.pages import formatting

LinkState = Literal["active", "not_open", "expired", "used_up"]


async def link_of(request: MerchantRequest) -> PaymentLink:
    """The link that the path names. Raises NotFound for one of another merchant or environment."""
    number = LinkId(request.path["link"])
    found = await link_repository.by_id(request.db, request.merchant.id, request.env, number)
    if found is None:
        raise NotFound
    return found


def caller(request: MerchantRequest) -> Caller:
    return Caller(request.merchant, request.env)


def link_state(link: PaymentLink, now: Instant) -> LinkState:
    if link.uses_left == 0:
        return "used_up"
    if link.expires_at is not None and link.expires_at <= now:
        return "expired"
    return "active" if link.is_open(now) else "not_open"


def address_of(request: MerchantRequest, link: PaymentLink) -> str:
    """The public address, for customers."""
    return f"{request.console.public_url}/pay/{link.path}"


@dataclass(frozen=True, slots=True)
class PaymentView:
    """A payment through a link. `payer`: the number, of which only the ends are shown; None for a card."""

    href: str
    status: str
    total: str
    mode: str
    payer: str | None
    created: str
    updated: str


def payment_view(request: MerchantRequest, payment: Payment, modes: Catalogue) -> PaymentView:
    mode = modes.by_operator(payment.operator)
    number = payment.phone_number
    return PaymentView(
        href=request.here(f"/payments/{payment.reference}"),
        status=payment.status,
        total=request.amount(payment.amount, payment.currency),
        mode=mode.name if mode else payment.operator,
        payer=formatting.masked_phone(number, mode.dial_code if mode else None) if number else None,
        created=request.date_time(payment.created_at),
        updated=request.date_time(payment.updated_at),
    )
