"""The list of a merchant's links, those of the cash desk apart from all others."""

import re
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from guichet.console.links.views import LinkState, link_state
from guichet.console.page_request import MerchantRequest
from guichet.domain.ids import LinkId
from guichet.domain.payment_links import PaymentLink
from guichet.links import repository as link_repository
from guichet.links.repository import LinkList

PAGE_SIZE: Final = 25
_KEY: Final = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class LinkRow:
    href: str
    label: str
    amount: str
    uses: int
    max_uses: int | None
    state: LinkState
    created: str


async def show(request: MerchantRequest) -> Response:
    """`after` and `before` name the link beside the page, `external_id` one link; `kind=desk`: those of the cash
    desk."""
    query = request.query
    kind = "desk" if query.get("kind") == "desk" else ""
    external_id = query.get("external_id", "").strip()[:100]
    if external_id:
        rows, newer, older = await _named(request, external_id), None, None
    else:
        wanted = LinkList(request.merchant.id, request.env, cash_desk=bool(kind))
        rows, newer, older = await _walk(request, wanted)
    return request.show(
        "links/list.html",
        rows=[_row(request, each) for each in rows],
        newer=None if newer is None else request.here("/links", kind=kind, before=str(newer)),
        older=None if older is None else request.here("/links", kind=kind, after=str(older)),
        kind=kind,
        external_id=external_id,
        may_change=request.may("links.change"),
    )


async def _named(request: MerchantRequest, external_id: str) -> list[PaymentLink]:
    if "\0" in external_id:
        return []
    found = await link_repository.by_external_id(
        request.db, request.merchant.id, request.env, external_id.encode(errors="replace").decode()
    )
    return [found] if found is not None else []


async def _walk(request: MerchantRequest, wanted: LinkList) -> tuple[list[PaymentLink], LinkId | None, LinkId | None]:
    """A page, and the keys of the pages beside it: None where there is none."""
    query = request.query
    before, after = _key(query.get("before", "")), _key(query.get("after", ""))
    newer = before is not None
    key = before if newer else after
    # One more than is shown says whether there is another page.
    found = await link_repository.walk(request.db, wanted, PAGE_SIZE + 1, key, newer=newer)
    more = len(found) > PAGE_SIZE
    rows = (found[-PAGE_SIZE:] if newer else found[:PAGE_SIZE]) if more else found
    if not rows:
        return [], None, None
    has_newer = more if newer else after is not None
    has_older = more if not newer else True
    return rows, rows[0].id if has_newer else None, rows[-1].id if has_older else None


def _key(text: str) -> LinkId | None:
    return LinkId(int(text)) if _KEY.fullmatch(text) else None


def _row(request: MerchantRequest, link: PaymentLink) -> LinkRow:
    return LinkRow(
        href=request.here(f"/links/{link.id}"),
        label=link.description,
        amount=request.amount(link.amount, link.currency),
        uses=link.uses_count,
        max_uses=link.max_uses,
        state=link_state(link, request.now()),
        created=request.date_time(link.created_at),
    )
