"""What the pages of the console are made of: a page about one merchant, a page of the back office, and their menus."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

from starlette.responses import Response

from guichet.console.page_request import ConsoleRequest, MenuEntry, MerchantRequest, StaffRequest, first_path
from guichet.domain.merchants import ENVS
from guichet.domain.records import Record
from guichet.domain.roles import MerchantRight, StaffRight, may_as_merchant

#: The menu of a merchant's pages, in groups: the text of an entry is `nav.` and its name, that of a group `nav_group.`.
_MERCHANT_MENU: Final = {
    "collect": ("cash_desk", "links"),
    "money": ("overview", "payments", "balance", "exports"),
    "build": ("webhooks", "developers", "requests"),
    "account": ("team", "mails", "activity"),
}
#: The same for the back office; the texts of entries begin with `admin_nav.`.
_STAFF_MENU: Final = {
    "": ("overview", "incidents", "approvals"),
    "customers": ("merchants", "payments"),
    "money": ("wallets", "treasury", "reconciliation"),
    "service": ("modes", "deliveries", "doctor"),
    "house": ("staff", "audit_log"),
}
#: What a telephone has under the thumb; the other entries are behind one more.
_DOCK: Final = ("cash_desk", "payments", "links", "balance")
_STAFF_DOCK: Final = ("overview", "incidents", "approvals", "payments")


class MerchantPage(Record, frozen=True):
    """A page at `/console/<merchant>/<env>` and `path`. Nobody without `right` sees it or posts to it; an act that
    needs another right asks for it itself (`Member.require`). `menu`: its entry in the menu, None for a page below
    another. `below`: the entry that it belongs to, where its address does not say so."""

    path: str
    right: MerchantRight
    show: Callable[[MerchantRequest], Awaitable[Response]] | None
    change: Callable[[MerchantRequest], Awaitable[Response]] | None = None
    menu: str | None = None
    below: str | None = None


class StaffPage(Record, frozen=True):
    """A page at `/admin` and `path`, otherwise as `MerchantPage`."""

    path: str
    right: StaffRight
    show: Callable[[StaffRequest], Awaitable[Response]] | None
    change: Callable[[StaffRequest], Awaitable[Response]] | None = None
    menu: str | None = None
    below: str | None = None


AnyPage = TypeVar("AnyPage", MerchantPage, StaffPage)


def merchant_sections(pages: tuple[MerchantPage, ...]) -> list[MerchantPage]:
    """The pages that stand in the menu, in its order."""
    return _sections(pages, _MERCHANT_MENU)


def staff_sections(pages: tuple[StaffPage, ...]) -> list[StaffPage]:
    return _sections(pages, _STAFF_MENU)


def section_of(sections: Sequence[AnyPage], shown: AnyPage) -> AnyPage | None:
    """The one that a page is, that it names, or that its address lies below."""
    above = [page for page in sections if shown.path.startswith(f"{page.path}/")]
    nearest = max(above, key=lambda page: len(page.path), default=None)
    name = shown.menu or shown.below or (nearest.menu if nearest else None)
    return next((page for page in sections if page.menu == name), None)


def merchant_menu(
    sections: Sequence[MerchantPage], here: MerchantPage | None, request: MerchantRequest
) -> list[MenuEntry]:
    """The entries that this person may open; `here` is the section of the page that is open."""
    return [
        _entry(request, "nav.", page, request.here(page.path), page is here)
        for page in sections
        if request.may(page.right)
    ]


def staff_menu(sections: Sequence[StaffPage], here: StaffPage | None, request: StaffRequest) -> list[MenuEntry]:
    return [
        _entry(request, "admin_nav.", page, request.at_admin(page.path), page is here)
        for page in sections
        if request.may(page.right)
    ]


def _entry(request: ConsoleRequest, texts: str, page: MerchantPage | StaffPage, href: str, here: bool) -> MenuEntry:
    merchants = isinstance(page, MerchantPage)
    name = page.menu or ""
    group = next(group for group, names in (_MERCHANT_MENU if merchants else _STAFF_MENU).items() if name in names)
    docked = name in (_DOCK if merchants else _STAFF_DOCK)
    return MenuEntry(str(request.text(texts + name)), href, here, name, group, docked)


def environment_switch(section: MerchantPage | None, request: MerchantRequest) -> list[MenuEntry]:
    """Leads to the same section in the other environment, or to its first page if this person may not open that."""
    links, role = [], request.member.role
    for env in reversed(ENVS):
        opens = section is not None and may_as_merchant(role, section.right, env)
        path = section.path if section and opens else first_path(role, env)
        links.append(MenuEntry(str(request.text(f"env.{env}")), request.here(path, env), env == request.env, env))
    return links


def _sections(pages: Sequence[AnyPage], menu: Mapping[str, Sequence[str]]) -> list[AnyPage]:
    return [page for names in menu.values() for name in names for page in pages if page.menu == name]
