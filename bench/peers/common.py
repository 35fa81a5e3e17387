"""What every peer shares: the body's rules, the fee, the row and the answer."""

import hashlib
import os
import re
from functools import cache
from typing import Annotated, Any, Final, Literal
from uuid import uuid4

from email_validator import EmailNotValidError, validate_email
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, HttpUrl

from guichet.clock import Instant, SystemClock, iso
from guichet.domain.catalogue import Catalogue, PaymentMode, mode_faults, quote
from guichet.domain.errors import InvalidRequest
from guichet.domain.mails import is_plain_email
from guichet.domain.money import Hundredths, round_to_currency
from guichet.merchants.catalogue_file import load_catalogue

#: The hash of the only key there is; a real one would look it up.
KEY_HASH: Final = hashlib.sha256(os.environ.get("BENCH_KEY", "").encode()).hexdigest()
_PHONE: Final = re.compile(r"\+?([0-9]{8,15})")


def _phone(value: str) -> str:
    if not (match := _PHONE.fullmatch(value)):
        raise ValueError("8 to 15 digits")
    return match[1]


def _email(value: str) -> str:
    if is_plain_email(value):
        return value
    try:
        validate_email(value, check_deliverability=False)
    except EmailNotValidError as error:
        raise ValueError(str(error)) from None
    return value


class Customer(BaseModel):
    model_config = ConfigDict(strict=True)

    firstname: Annotated[str, Field(max_length=100)] | None = None
    lastname: Annotated[str, Field(max_length=100)] | None = None
    email: Annotated[str, Field(max_length=150), AfterValidator(_email)] | None = None
    address: Annotated[str, Field(max_length=255)] | None = None
    country: Annotated[str, Field(max_length=60)] | None = None


class Body(BaseModel):
    model_config = ConfigDict(strict=True)

    amount: Annotated[float | int, Field(ge=1, le=99_999_999)]
    currency: Literal["XOF", "XAF", "EUR", "USD"] = "XOF"
    operator: Annotated[str, Field(max_length=32)]
    phone_number: Annotated[str, AfterValidator(_phone)] | None = None
    otp: Annotated[str, Field(max_length=16)] | None = None
    description: Annotated[str, Field(max_length=255)] = "Paiement API"
    external_id: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    return_url: HttpUrl | None = None
    callback_url: HttpUrl | None = None
    metadata: dict[str, Any] | None = None
    customer: Customer | None = None


@cache
def catalogue() -> Catalogue:
    return load_catalogue(None)


def known(authorization: str | None) -> bool:
    scheme, _, key = (authorization or "").partition(" ")
    return scheme == "Bearer" and hashlib.sha256(key.encode()).hexdigest() == KEY_HASH


def row_of(body: Body) -> tuple[dict[str, Any], PaymentMode]:
    """The columns of a new payment; ValueError when the mode or the bounds forbid it."""
    customer = body.customer or Customer()
    given = {
        "phone_number": body.phone_number,
        "otp": body.otp,
        "return_url": body.return_url,
        "customer.firstname": customer.firstname,
        "customer.lastname": customer.lastname,
        "customer.email": customer.email,
    }
    try:
        mode = catalogue().choose(body.operator, None)
        quoted = quote(mode, Hundredths(round(body.amount * 100)))
        if faults := mode_faults(mode, given.get, quoted, body.currency):
            raise InvalidRequest("refused", faults)
    except InvalidRequest as error:
        raise ValueError(error.message) from None
    now: Instant = SystemClock().now()
    return {
        "merchant_id": 1,
        "env": "test",
        "reference": str(uuid4()),
        "external_id": body.external_id,
        "status": "pending",
        "amount": quoted.amount,
        "fee_amount": quoted.fee_amount,
        "total_amount": quoted.total_amount,
        "currency": body.currency,
        "description": body.description,
        "operator": mode.operator,
        "phone_number": body.phone_number,
        "firstname": customer.firstname,
        "lastname": customer.lastname,
        "email": customer.email,
        "address": customer.address,
        "country": customer.country,
        "return_url": None if body.return_url is None else str(body.return_url),
        "callback_url": None if body.callback_url is None else str(body.callback_url),
        "metadata": None,
        "link_id": None,
        "checkout_token": None,
        "created_at": now,
        "updated_at": now,
        "provider_account": "sandbox",
        "provider_reference": None,
        "provider_data": None,
        "redirect_url": None,
        "failure_reason": None,
        "next_poll_at": now + 10_000_000,
        "poll_count": 0,
        "lease_expires_at": None,
        "account_fingerprint": None,
        "payer_number": None,
        "asked_at": None,
        "initiation_ended_at": None,
        "not_found_count": 0,
        "not_found_duration": 0,
        "link_reserved_until": None,
        "answered_pending": False,
        "link_external_id": None,
        "counted_day": None,
        "attempt_of": None,
        "refused_at_initiation": False,
        "session_reference": None,
    }, mode


def rendered(payment_id: int, row: dict[str, Any], mode: PaymentMode) -> dict[str, Any]:
    """The payment object of the contract."""
    return {
        "reference": row["reference"],
        "identifier": f"{payment_id:010d}",
        "external_id": row["external_id"],
        "status": row["status"],
        "amount": row["amount"] / 100,
        "fee_amount": row["fee_amount"] / 100,
        "total_amount": row["total_amount"] / 100,
        "currency": row["currency"],
        "description": row["description"],
        "payment_mode": {
            "id": mode.id,
            "name": mode.name,
            "type": mode.type,
            "operator": mode.operator,
            "country": mode.country,
            "country_code": mode.country_code,
        },
        "customer": {name: row[name] for name in ("firstname", "lastname", "email", "phone_number")},
        "payment_url": None,
        "metadata": row["metadata"],
        "created_at": iso(row["created_at"]),
        "updated_at": iso(row["updated_at"]),
        "debited_amount": round_to_currency(row["total_amount"], row["currency"]) / 100,
        "failure": None,
        "payment_link": None,
    }


class Mode(BaseModel):
    id: int
    name: str
    type: str
    operator: str
    country: str | None
    country_code: str | None


class CustomerOut(BaseModel):
    firstname: str | None
    lastname: str | None
    email: str | None
    phone_number: str | None


class PaymentOut(BaseModel):
    reference: str
    identifier: str
    external_id: str | None
    status: str
    amount: float
    fee_amount: float
    total_amount: float
    currency: str
    description: str
    payment_mode: Mode
    customer: CustomerOut
    payment_url: str | None
    metadata: dict[str, Any] | None
    created_at: str
    updated_at: str
    debited_amount: float
    failure: dict[str, str] | None
    payment_link: dict[str, Any] | None


class Answer(BaseModel):
    success: bool
    data: PaymentOut
