"""The list of a merchant's links, those of the cash desk apart from all others; one link with its address and QR code,
who paid through it and its end; the poster with its QR code."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Final, Literal
from urllib.parse import quote

from markupsafe import Markup
from starlette.responses import Response

from guichet.clock import Instant
from guichet.console.own_sales import only_cashier, shows_link
from guichet.console.page_request import MerchantRequest
from guichet.console.payments.list_filter import Choice
from guichet.console.payments.payment_view import contested
from guichet.domain.catalogue import Catalogue
from guichet.domain.errors import NotFound
from guichet.domain.ids import LinkId, PaymentId
from guichet.domain.payment_links import PaymentLink
from guichet.domain.payments import Payment
from guichet.links import repository as link_repository
from guichet.links.links import close_link
from guichet.links.repository import LinkList
from guichet.pages import formatting, i18n
from guichet.pages.fields import Lenient, text
from guichet.pages.lists import ById, Cursor, ListPage, Pager
from guichet.pages.qr_codes import qr_code
from guichet.pages.sms import gsm_text
from guichet.pages.views import View
from guichet.payments import repository as payments
from guichet.printable import printable_label

PAGE_SIZE: Final = 25
USES_SHOWN: Final = 25

LinkState = Literal["active", "not_open", "expired", "used_up"]


class ListQuery(ById):
    """`external_id`: that of one link."""

    kind: Lenient[Literal["desk"]] = None
    external_id: Annotated[str, text(100)] = ""


class LinkListView(View, frozen=True):
    query: ListQuery
    kinds: list[Choice]
    rows: list[tuple[PaymentLink, LinkState]]
    pager: Pager


async def show_list(request: MerchantRequest) -> Response:
    query = ListQuery.read(request.query)
    page = await _read(request, query)
    address = partial(request.merchant_url, "/links", None, kind=query.kind)
    view = LinkListView(
        query=query,
        kinds=[
            Choice(request.text(name), request.merchant_url("/links", None, kind=kind), kind == query.kind)
            for name, kind in (("links.kind_shared", None), ("links.kind_desk", "desk"))
        ],
        rows=[(link, link_state(link, request.now())) for link in page.rows],
        pager=page.pager(lambda link: link.id, address),
    )
    return request.page("links/list.html", view)


async def _read(request: MerchantRequest, query: ListQuery) -> ListPage[PaymentLink]:
    if query.external_id:
        external_id = query.external_id.encode(errors="replace").decode()
        link = await link_repository.by_external_id(request.db, *request.scope, external_id)
        rows = [link] if link and shows_link(request, link) else []
        return ListPage(rows, has_newer=False, has_older=False)
    cursor = query.cursor
    sales = query.kind == "desk"
    link_list = LinkList(*request.scope, cash_desk=sales, cashier=only_cashier(request) if sales else None)
    key = None if cursor.key is None else LinkId(cursor.key)
    rows = await link_repository.walk(request.db, link_list, PAGE_SIZE + 1, key, newer=cursor.is_newer)
    return ListPage.cut(rows, PAGE_SIZE, cursor)


async def link_of(request: MerchantRequest) -> PaymentLink:
    """The link that the path names. Raises NotFound for one of another merchant or environment, or another cashier."""
    number = LinkId(request.path["link"])
    link = await link_repository.by_id(request.db, *request.scope, number)
    if link is None or not shows_link(request, link):
        raise NotFound
    return link


def link_state(link: PaymentLink, now: Instant) -> LinkState:
    if link.uses_left == 0:
        return "used_up"
    if link.expires_at is not None and link.expires_at <= now:
        return "expired"
    return "active" if link.is_open(now) else "not_open"


def address_of(request: MerchantRequest, link: PaymentLink) -> str:
    """The public address, for customers."""
    return f"{request.console.public_url}/pay/{link.path}"


class LinkPaymentView(View, frozen=True):
    """A payment through a link. `payer`: the number, of which only the ends are shown; None for a card. `contested`:
    a bank has its money."""

    payment: Payment
    mode: str
    payer: str | None
    contested: bool


def payment_view(
    request: MerchantRequest, payment: Payment, modes: Catalogue, *, is_contested: bool = False
) -> LinkPaymentView:
    mode = modes.by_operator(payment.operator)
    number = payment.phone_number
    return LinkPaymentView(
        payment=payment,
        mode=mode.name if mode else payment.operator,
        payer=formatting.masked_phone(number, mode.dial_code if mode else None) if number else None,
        contested=is_contested,
    )


class Sharing(View, frozen=True):
    """`text`: the sentence, for the telephone's own menu; the others are addresses."""

    text: str
    whatsapp: str
    sms: str
    mail: str


def sharing(request: MerchantRequest, merchant: str, link: PaymentLink, address: str) -> Sharing:
    """The same sentence for each. Its values are percent-encoded as a whole: nothing in a title can add a recipient, a
    copy or a second line to a header."""
    amount = request.amount(link.amount, link.currency)
    # As text, not as HTML: `request.text` escapes what it is given.
    values = {"merchant": merchant, "label": printable_label(link.description), "amount": amount, "address": address}
    message = request.text("links.share_message", **values).unescape()
    subject = request.text("links.share_subject", merchant=merchant, amount=amount).unescape()
    body, title = quote(message, safe=""), quote(" ".join(subject.split()), safe="")
    return Sharing(
        text=message,
        whatsapp=f"https://wa.me/?text={body}",
        sms=f"sms:?body={quote(gsm_text(message), safe='')}",
        mail=f"mailto:?subject={title}&body={body}",
    )


class LinkView(View, frozen=True):
    """`uses`: a page of the payments through it."""

    link: PaymentLink
    state: LinkState
    address: str
    qr: Markup
    share: Sharing
    uses: list[LinkPaymentView]
    pager: Pager


async def show(request: MerchantRequest) -> Response:
    link, query = await link_of(request), ById.read(request.query)
    before = None if query.before is None else PaymentId(query.before)
    page = ListPage.cut(
        await payments.of_link(request.db, link.id, USES_SHOWN + 1, before), USES_SHOWN, Cursor(query.before)
    )
    page_url = partial(request.merchant_url, f"/links/{link.id}")
    address, state = address_of(request, link), link_state(link, request.now())
    catalogue = await request.ctx.catalogues.of(request.merchant.id)
    disputed = await contested(request)
    view = LinkView(
        link=link,
        state=state,
        address=address,
        qr=qr_code(address, request.text("links.qr_alt").unescape()),
        share=sharing(request, request.merchant.name, link, address),
        uses=[payment_view(request, payment, catalogue, is_contested=payment.id in disputed) for payment in page.rows],
        pager=Pager(page_url() if before else None, page.pager(lambda payment: payment.id, page_url).older),
    )
    return request.page("links/link.html", view)


async def close(request: MerchantRequest) -> Response:
    """Nobody can begin to pay through it any more."""
    await request.fields()
    request.require("links.change")
    link = await link_of(request)
    await close_link(request.ctx.db, request.ctx.clock, link, request.actor)
    return request.done(request.merchant_url(f"/links/{link.id}"), "link_closed")


class PosterView(View, frozen=True):
    """`translated`: a text in the other language."""

    link: PaymentLink
    address: str
    qr: Markup
    modes: list[str]
    other: str
    translated: Callable[[str], Markup]
    state: LinkState


async def show_poster(request: MerchantRequest) -> Response:
    """A page to print, in the reader's language and below it in the other: a shop's customers read one of them."""
    link = await link_of(request)
    address = address_of(request, link)
    modes = await request.ctx.catalogues.of(request.merchant.id)
    other = next(language for language in i18n.LANGUAGES if language != request.language)
    view = PosterView(
        link=link,
        address=address,
        qr=qr_code(address, request.text("links.qr_alt").unescape()),
        modes=list(dict.fromkeys(mode.name for mode in modes.active())),
        other=other,
        translated=partial(request.renderer.text, other),
        state=link_state(link, request.now()),
    )
    return request.page("links/poster.html", view)
