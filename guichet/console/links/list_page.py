"""The list of a merchant's links, those of the cash desk apart from all others."""

import re
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from guichet.accounts.rights import Member
from guichet.console.links.views import LinkState, link_state
from guichet.console.visit import Visit
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


async def show(visit: Visit, acting: Member) -> Response:
    """`after` and `before` name the link beside the page, `external_id` one link; `kind=desk`: those of the cash
    desk."""
    query = visit.request.query_params
    kind = "desk" if query.get("kind") == "desk" else ""
    external_id = query.get("external_id", "").strip()[:100]
    if external_id:
        rows, newer, older = await _named(visit, acting, external_id), None, None
    else:
        wanted = LinkList(acting.merchant.id, acting.env, cash_desk=bool(kind))
        rows, newer, older = await _walk(visit, wanted)
    return visit.show(
        "links/list.html",
        rows=[_row(visit, each) for each in rows],
        newer=None if newer is None else visit.here("/links", kind=kind, before=str(newer)),
        older=None if older is None else visit.here("/links", kind=kind, after=str(older)),
        kind=kind,
        external_id=external_id,
        may_change=acting.may("links.change"),
    )


async def _named(visit: Visit, acting: Member, external_id: str) -> list[PaymentLink]:
    if "\0" in external_id:
        return []
    found = await link_repository.by_external_id(
        visit.console.ctx.db, acting.merchant.id, acting.env, external_id.encode(errors="replace").decode()
    )
    return [found] if found is not None else []


async def _walk(visit: Visit, wanted: LinkList) -> tuple[list[PaymentLink], LinkId | None, LinkId | None]:
    """A page, and the keys of the pages beside it: None where there is none."""
    query = visit.request.query_params
    before, after = _key(query.get("before", "")), _key(query.get("after", ""))
    newer = before is not None
    key = before if newer else after
    # One more than is shown says whether there is another page.
    found = await link_repository.walk(visit.console.ctx.db, wanted, PAGE_SIZE + 1, key, newer=newer)
    more = len(found) > PAGE_SIZE
    rows = (found[-PAGE_SIZE:] if newer else found[:PAGE_SIZE]) if more else found
    if not rows:
        return [], None, None
    has_newer = more if newer else after is not None
    has_older = more if not newer else True
    return rows, rows[0].id if has_newer else None, rows[-1].id if has_older else None


def _key(text: str) -> LinkId | None:
    return LinkId(int(text)) if _KEY.fullmatch(text) else None


def _row(visit: Visit, link: PaymentLink) -> LinkRow:
    return LinkRow(
        href=visit.here(f"/links/{link.id}"),
        label=link.description,
        amount=visit.amount(link.amount, link.currency),
        uses=link.uses_count,
        max_uses=link.max_uses,
        state=link_state(link, visit.console.ctx.clock.now()),
        created=visit.date_time(link.created_at),
    )
