"""What the objects that we send have in common: the types of their fields, and the values shown in examples.

An object is a `TypedDict`: a plain dict whose fields mypy checks. The OpenAPI document describes it by its annotations
and docstrings, under its name without `Object` (guichet/api/json_schema.py). The docstrings are in French because
merchants read them.
"""

from typing import Annotated, Any, Final

from msgspec import Raw
from pydantic import Field, InstanceOf, WithJsonSchema

from guichet.domain.catalogue import MODE_TYPES, PaymentModeType
from guichet.domain.money import CURRENCIES, Currency

#: OpenAPI extension for an enumeration to which v1 may add values.
OPEN_ENUM: Final = "x-extensible-enum"


def text_schema(**keywords: Any) -> WithJsonSchema:
    """Documents a field as a string with these JSON Schema keywords."""
    return WithJsonSchema({"type": "string", **keywords})


def open_enum(*values: str) -> WithJsonSchema:
    """Documents the known values of a string. A closed `enum` would make clients reject the values that v1 adds."""
    return text_schema(**{OPEN_ENUM: list(values)})


def example(value: Any) -> Any:
    """The value of a field in the examples of the documentation."""
    return Field(examples=[value])


#: An exact JSON number: see `number` in guichet/domain/money.py and `percent` in guichet/domain/catalogue.py. A double
#: holds every amount of the API exactly to the hundredth; without a format, generated Go would read them into 32 bits.
Number = Annotated[int | InstanceOf[Raw], WithJsonSchema({"type": "number", "format": "double"})]
#: A JSON object whose text is sent as it was received.
RawJsonObject = Annotated[InstanceOf[Raw], WithJsonSchema({"type": "object", "additionalProperties": True})]
Uuid = Annotated[str, text_schema(format="uuid")]
Timestamp = Annotated[str, text_schema(format="date-time")]
Url = Annotated[str, text_schema(format="uri")]
CurrencyCode = Annotated[Currency, text_schema(enum=list(CURRENCIES))]
ModeType = Annotated[PaymentModeType, text_schema(enum=list(MODE_TYPES))]

CREATED_AT: Final = "2026-11-20T10:15:30.123456Z"
SETTLED_AT: Final = "2026-11-20T10:15:41.234567Z"
PAYMENT_REFERENCE: Final = "5f0c4a52-6d0e-4c8f-9a55-0d7f6c1b2e34"
REFUND_REFERENCE: Final = "8a4a1f0c-2b7e-4c55-8f3d-1e2d3c4b5a69"
DELIVERY_ID: Final = "0b7d1a0e-3f5b-4f0e-9a4e-6d1c2b3a4f55"
LINK_URL: Final = "https://pay.example.com/pay/4kQ0yT7ZbN1xWm8RcV2dHs/9uLjE5aPfG3oKi6XtYqBnM"
SESSION_ID: Final = "3c1f7b52-9a0d-4e6c-8b21-7f4a5d6e8c90"
WEBHOOK_URL: Final = "https://boutique.example/webhooks/guichet"
