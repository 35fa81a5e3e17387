"""The client library of Guichet. README.md begins with ten lines to the first payment."""

from guichet_sdk import webhooks
from guichet_sdk._async import AsyncGuichet
from guichet_sdk._sync import Guichet
from guichet_sdk.errors import (
    ApiConnection,
    Conflict,
    Forbidden,
    GuichetError,
    InvalidRequest,
    NotFound,
    PaymentFailed,
    RateLimited,
    ServerError,
    SignatureVerification,
    Unauthorized,
)

__all__ = [
    "ApiConnection",
    "AsyncGuichet",
    "Conflict",
    "Forbidden",
    "Guichet",
    "GuichetError",
    "InvalidRequest",
    "NotFound",
    "PaymentFailed",
    "RateLimited",
    "ServerError",
    "SignatureVerification",
    "Unauthorized",
    "webhooks",
]
