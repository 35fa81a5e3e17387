"""What the pages of the console are made of: a page about one merchant, a page of the back office, and their menus."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from guichet.console.page_request import ConsoleRequest, MenuEntry, MerchantRequest, StaffRequest
from guichet.domain.merchants import ENVS
from guichet.domain.roles import MerchantRight, StaffRight, may_as_merchant

#: The order of the menu of a merchant's pages; the text of an entry is `nav.` and its name.
_MERCHANT_MENU: Final = (
    "overview",
    "payments",
    "links",
    "cash_desk",
    "balance",
    "webhooks",
    "developers",
    "team",
    "activity",
)
#: The same for the back office; the texts begin with `admin_nav.`.
_STAFF_MENU: Final = (
    "overview",
    "merchants",
    "payments",
    "incidents",
    "approvals",
    "modes",
    "wallets",
    "reconciliation",
    "deliveries",
    "doctor",
    "staff",
    "audit_log",
)


@dataclass(frozen=True, slots=True)
class MerchantPage:
    """A page at `/console/<merchant>/<env>` and `path`. Nobody without `right` sees it or posts to it; an act that
    needs another right asks for it itself (`Member.require`). `menu`: its entry in the menu, None for a page below
    another. `below`: the entry that it belongs to, where its address does not say so."""

    path: str
    right: MerchantRight
    show: Callable[[MerchantRequest], Awaitable[Response]] | None
    change: Callable[[MerchantRequest], Awaitable[Response]] | None = None
    menu: str | None = None
    below: str | None = None


@dataclass(frozen=True, slots=True)
class StaffPage:
    """A page at `/admin` and `path`, otherwise as `MerchantPage`."""

    path: str
    right: StaffRight
    show: Callable[[StaffRequest], Awaitable[Response]] | None
    change: Callable[[StaffRequest], Awaitable[Response]] | None = None
    menu: str | None = None
    below: str | None = None


def merchant_menu(pages: tuple[MerchantPage, ...], shown: MerchantPage, request: MerchantRequest) -> list[MenuEntry]:
    """The entries that this person may open; `shown` is the page that is open."""
    seen = {page.menu: request.here(page.path) for page in pages if request.may(page.right)}
    entries: dict[str, str] = {name: seen[name] for name in _MERCHANT_MENU if name in seen}
    return _menu(request, "nav", entries, _entry_of(pages, shown))


def staff_menu(pages: tuple[StaffPage, ...], shown: StaffPage, request: StaffRequest) -> list[MenuEntry]:
    seen = {page.menu: request.at_admin(page.path) for page in pages if request.may(page.right)}
    entries: dict[str, str] = {name: seen[name] for name in _STAFF_MENU if name in seen}
    return _menu(request, "admin_nav", entries, _entry_of(pages, shown))


def environment_switch(
    pages: tuple[MerchantPage, ...], shown: MerchantPage, request: MerchantRequest
) -> list[MenuEntry]:
    """Leads to the same section in the other environment, or to its overview if this person may not open that."""
    section = next((page for page in pages if page.menu and page.menu == _entry_of(pages, shown)), None)
    links = []
    for env in reversed(ENVS):
        path = section.path if section and may_as_merchant(request.member.role, section.right, env) else ""
        links.append(MenuEntry(str(request.text(f"env.{env}")), request.here(path, env), env == request.env))
    return links


def _entry_of(pages: Sequence[MerchantPage | StaffPage], shown: MerchantPage | StaffPage) -> str | None:
    """The menu's entry of a page: its own, or that of the page above it."""
    above = [page for page in pages if page.menu and shown.path.startswith(f"{page.path}/")]
    nearest = max(above, key=lambda page: len(page.path), default=None)
    return shown.menu or shown.below or (nearest.menu if nearest else None)


def _menu(request: ConsoleRequest, texts: str, entries: dict[str, str], here: str | None) -> list[MenuEntry]:
    return [MenuEntry(str(request.text(f"{texts}.{name}")), href, name == here) for name, href in entries.items()]
