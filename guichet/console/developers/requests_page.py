"""The requests of the last seven days of a merchant's programs, in one environment."""

from typing import Final

from starlette.responses import Response

from guichet.console.page_request import MerchantRequest
from guichet.merchants import api_keys, request_log
from guichet.merchants.request_log import RequestFilter

_PAGE: Final = 50
_CLASSES: Final = ("2", "4", "5")
#: What a typed path is cut to: no path in the log is longer.
_LONGEST: Final = 200


async def show(request: MerchantRequest) -> Response:
    query = request.query
    chosen = query.get("status")
    status = chosen if chosen in _CLASSES else None
    path = query.get("begins", "").strip()[:_LONGEST].replace("\0", "")
    wanted = RequestFilter(None if status is None else int(status), path)
    before, after = _row_id(query.get("before")), _row_id(query.get("after"))
    db, whose = request.db, (request.merchant.id, request.env)
    if after is not None:
        rows = await request_log.page(db, *whose, wanted, _PAGE + 1, after=after)
        newer, older, rows = len(rows) > _PAGE, True, rows[-_PAGE:]
    else:
        rows = await request_log.page(db, *whose, wanted, _PAGE + 1, before=before)
        newer, older, rows = before is not None, len(rows) > _PAGE, rows[:_PAGE]
    filters = {"status": status, "begins": path}
    return request.show(
        "developers/requests.html",
        rows=rows,
        previews=await api_keys.previews(db, {row.key_id for row in rows}),
        filters=filters,
        classes=_CLASSES,
        newer=request.here("/developers/requests", None, **filters, after=str(rows[0].id)) if newer and rows else None,
        older=request.here("/developers/requests", None, **filters, before=str(rows[-1].id))
        if older and rows
        else None,
    )


def _row_id(text: str | None) -> int | None:
    """A position in the log; None for what is none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None
