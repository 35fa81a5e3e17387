"""The form of a new link as the body that the API would get, so that the same rules and sentences hold for both."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

from guichet.domain.errors import InvalidRequest
from guichet.domain.payment_links import LIMITED
from guichet.schemas.json_codec import parse_object

_SPACES: Final = re.compile(r"[\s\u00a0\u202f]")
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,2})?")
#: In `5.000` and `5,000` somebody means thousands.
_THOUSANDS: Final = re.compile(r"-?[0-9]{1,3}(\.[0-9]{3}){1,4}")
_TEXTS: Final = ("description", "external_id", "return_url")
_DATES: Final = ("starts_at", "expires_at")
_NO_OBJECT: Final = 'Un objet JSON est attendu, par exemple {"commande": 42}.'
_NO_THOUSANDS: Final = "Écrivez 5000 ou 5 000 : un point ou une virgule sépare les décimales."


def json_number(form: Mapping[str, str], field: str) -> str:
    """`5 000`, `5000` or `12,50` as a JSON number; any other text as a JSON string, which the rules then refuse.

    Raises InvalidRequest for `5.000`, which they would take for five.
    """
    typed = form.get(field, "")
    compact = _SPACES.sub("", typed).replace(",", ".")
    if _THOUSANDS.fullmatch(compact):
        raise InvalidRequest(_NO_THOUSANDS, {field: [_NO_THOUSANDS]})
    if not compact:
        return "null"
    return str(Decimal(compact)) if _NUMBER.fullmatch(compact) else json.dumps(typed)


def link_body(form: Mapping[str, str], external_id: str, time_zone: ZoneInfo) -> bytes:
    """The JSON of `POST /payment-links`. `external_id`: if none was typed; `time_zone`: of the dates that were typed.

    Raises InvalidRequest if the metadata are no JSON object, or a number is not clear.
    """
    members = {name: json.dumps(form.get(name, "").strip() or None) for name in _TEXTS}
    if members["external_id"] == "null":
        members["external_id"] = json.dumps(external_id)
    members["amount"] = json_number(form, "amount")
    if form.get("type") == LIMITED:
        members |= {"type": json.dumps(LIMITED), "max_uses": json_number(form, "max_uses")}
    members |= {name: json.dumps(_date(form.get(name, "").strip(), time_zone)) for name in _DATES}
    members["metadata"] = _metadata(form.get("metadata", "").strip())
    return ("{" + ",".join(f'"{name}":{value}' for name, value in members.items()) + "}").encode(errors="replace")


def _date(typed: str, time_zone: ZoneInfo) -> str | None:
    """A date of a form, which has no offset, as ISO-8601; a text that is no date as it is."""
    try:
        moment = datetime.fromisoformat(typed)
    except ValueError:
        return typed or None
    return moment.isoformat() if moment.tzinfo else moment.replace(tzinfo=time_zone).isoformat()


def _metadata(typed: str) -> str:
    if not typed:
        return "null"
    try:
        # Nothing but an object, so that the text cannot add members beside it.
        parse_object(typed.encode(errors="replace"))
        json.loads(typed)
    except (InvalidRequest, ValueError, RecursionError):
        raise InvalidRequest(_NO_OBJECT, {"metadata": [_NO_OBJECT]}) from None
    return typed
