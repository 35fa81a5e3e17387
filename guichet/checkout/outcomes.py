"""What a customer sees of a payment that exists: waiting, receipt or failure."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode, urlsplit, urlunsplit

from guichet import clock
from guichet.checkout import format as written
from guichet.checkout.page_request import Visit
from guichet.checkout.views import Bill, bill, initials
from guichet.domain.catalogue import Catalogue
from guichet.domain.merchants import Merchant
from guichet.domain.payments import Payment

#: Seconds between two refreshes without JavaScript, by the age of the payment in seconds.
_REFRESH: Final = ((120, 4), (600, 10))
_REFRESH_LATER: Final = 30
#: After this many seconds a customer wonders, and must not pay twice.
_LONG: Final = 90


@dataclass(frozen=True, slots=True)
class PaymentView:
    """A payment on any of its pages. `*_href` are addresses, None where there is nowhere to go."""

    stage: str
    merchant: str
    monogram: str
    label: str
    bill: Bill
    date: str
    mode: str
    phone: str | None
    identifier: str
    reference: str
    test: bool
    refunded: bool
    reason: str | None
    by_code: bool
    long: bool
    refresh: int
    here: str
    status_href: str
    elsewhere: str | None
    simulator: str | None
    retry_href: str | None
    return_href: str | None


def stage(payment: Payment) -> str:
    """What the waiting page watches: it changes when the page must."""
    if payment.status == "pending" and payment.redirect_url:
        return "elsewhere"
    return payment.status


def view(
    visit: Visit,
    payment: Payment,
    merchant: Merchant,
    modes: Catalogue,
    now: clock.Instant,
    path: str,
    *,
    link_path: str | None = None,
    simulator: str | None = None,
) -> PaymentView:
    """`path` is the page's own address within the service, `link_path` its link's where it came from one."""
    mode = modes.by_operator(payment.operator)
    name = mode.name if mode else payment.operator
    age = (now - payment.created_at) // clock.SECOND
    shown_bill = bill(visit, payment.amount, payment.total_amount, payment.currency)
    failed = payment.status == "failed"
    return PaymentView(
        stage=stage(payment),
        merchant=merchant.name,
        monogram=initials(merchant.name),
        label=payment.description,
        bill=shown_bill,
        date=written.moment(payment.updated_at, visit.language, mode.country_code if mode else None),
        mode=name,
        phone=written.masked(payment.phone_number, mode.dial_code if mode else None) if payment.phone_number else None,
        identifier=payment.identifier,
        reference=payment.reference,
        test=payment.env == "test",
        refunded=payment.status == "refunded",
        reason=_reason(visit, payment, name, shown_bill) if failed else None,
        by_code=bool(mode and mode.requires_otp),
        long=age >= _LONG,
        refresh=next((seconds for limit, seconds in _REFRESH if age < limit), _REFRESH_LATER),
        here=visit.href(path),
        status_href=visit.href(f"{path}/status"),
        elsewhere=_web_address(payment.redirect_url),
        simulator=simulator,
        retry_href=visit.href(link_path, mode=payment.operator) if link_path else None,
        return_href=None if link_path else return_address(payment),
    )


def _reason(visit: Visit, payment: Payment, mode: str, shown: Bill) -> str:
    """Why it failed; a reason without words of its own for customers is a plain refusal."""
    key = f"failure.{payment.failure_reason}"
    known = visit.renderer.has(key)
    return visit.say(key if known else "failure.refused", mode=mode, total=shown.total)


def return_address(payment: Payment) -> str | None:
    """The merchant's page with `reference` and `status` beside the query that was there; None where there is none."""
    address = _web_address(payment.return_url)
    if address is None:
        return None
    parts = urlsplit(address)
    added = urlencode({"reference": payment.reference, "status": payment.status})
    query = f"{parts.query}&{added}" if parts.query else added
    return urlunsplit(parts._replace(query=query))


def _web_address(url: str | None) -> str | None:
    """Only http and https lead anywhere from our pages."""
    return url if url and urlsplit(url).scheme in ("http", "https") else None
