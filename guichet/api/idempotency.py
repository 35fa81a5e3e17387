"""The `Idempotency-Key` header (docs/contract.md, "Repeated requests")."""

import json
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from hashlib import sha256
from typing import Final

from guichet.api.http import Call
from guichet.domain.errors import fault
from guichet.merchants.idempotency import IdempotencyKey
from guichet.server.request_context import header

MAX_KEY: Final = 255
#: `metadata` may hold numbers of more digits than the usual context keeps.
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_MALFORMED: Final = f"De 1 à {MAX_KEY} caractères ASCII imprimables sont attendus."


def requested_key(call: Call, body: bytes) -> IdempotencyKey | None:
    """The key of this request, whose body `parse_object` has accepted; None without the header. Raises
    InvalidRequest."""
    scope = call.request.scope
    key = header(scope, b"idempotency-key")
    if key is None:
        return None
    if not (1 <= len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
        raise fault("Idempotency-Key", _MALFORMED)
    method = scope["method"]
    digest = sha256(f"{method} {scope['path']}\n{_canonical(body)}".encode()).hexdigest()
    return IdempotencyKey(call.merchant_id, call.env, f"{method} {scope['route'].path}", key, digest)


def _canonical(body: bytes) -> str:
    """The same text for bodies that say the same: whatever the order of their names, their white space, their escapes
    and the spelling of their numbers."""
    value = json.loads(body.strip() or b"{}", parse_int=_number, parse_float=_number)
    return json.dumps(value or {}, sort_keys=True, separators=(",", ":"))


def _number(text: str) -> str:
    """With a NUL, which no text of a request has (D7): it is not to be taken for one."""
    try:
        return f"\0{_EXACT.normalize(Decimal(text))}"
    except ArithmeticError:  # Its exponent is beyond every Decimal.
        return f"\0{text}"
