"""What the pages of the console are made of: a page about one merchant, a page of the back office, and their menus."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeVar

from guichet.console.console import ADMIN_ROOT, ROOT
from guichet.console.navigation import MenuEntry, Navigation, first_path
from guichet.console.page_request import MerchantRequest, StaffRequest
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import ENVS, Environment
from guichet.domain.records import Record
from guichet.domain.roles import MerchantRight, MerchantRole, StaffRight, StaffRole, may_as_merchant, may_as_staff
from guichet.pages.render import Renderer

#: The menu of a merchant's pages, in groups: the text of an entry is `nav.` and its name, that of a group `nav_group.`.
MERCHANT_MENU: Final = {
    "collect": ("cash_desk", "links"),
    "money": ("overview", "payments", "balance", "exports"),
    "build": ("webhooks", "developers", "requests"),
    "account": ("team", "mails", "activity"),
}
#: The same for the back office; the texts of entries begin with `admin_nav.`.
STAFF_MENU: Final = {
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
    needs another right asks for it itself (`Member.require`). `module`, below `guichet.console`: where the functions
    `show` and `change` are, which answer GET and POST. `menu`: its entry in the menu, None for a page below another.
    `below`: the entry that it belongs to, where its address does not say so."""

    path: str
    right: MerchantRight
    module: str
    show: str
    change: str | None = None
    menu: str | None = None
    below: str | None = None


class StaffPage(Record, frozen=True):
    """A page at `/admin` and `path`, of a module below `guichet.console.admin`, otherwise as `MerchantPage`."""

    path: str
    right: StaffRight
    module: str
    show: str
    change: str | None = None
    menu: str | None = None
    below: str | None = None


AnyPage = TypeVar("AnyPage", MerchantPage, StaffPage)


def sections_of(pages: Sequence[AnyPage], menu: Mapping[str, Sequence[str]]) -> tuple[AnyPage, ...]:
    """The pages that stand in the menu, in its order."""
    return tuple(page for names in menu.values() for name in names for page in pages if page.menu == name)


def section_of(sections: Sequence[AnyPage], current: AnyPage) -> AnyPage | None:
    """The one that a page is, that it names, or that its address lies below."""
    above = [page for page in sections if current.path.startswith(f"{page.path}/")]
    nearest = max(above, key=lambda page: len(page.path), default=None)
    name = current.menu or current.below or (nearest.menu if nearest else None)
    return next((page for page in sections if page.menu == name), None)


def merchant_navigation(
    sections: tuple[MerchantPage, ...], current: MerchantPage | None, request: MerchantRequest
) -> Navigation:
    """To what this person may open; `current` is the section of the page that is open."""
    member = request.member
    return _of_merchant(*_reader(request, ROOT), sections, current, member.role, member.merchant.id, member.env)


def staff_navigation(sections: tuple[StaffPage, ...], current: StaffPage | None, request: StaffRequest) -> Navigation:
    return _of_staff(*_reader(request, ADMIN_ROOT), sections, current, request.member.role)


def _reader(request: MerchantRequest | StaffRequest, root: str) -> tuple[Renderer, str, str, str]:
    """How the entries of a menu are written: in which language, and what their addresses begin and end with."""
    query = f"?lang={request.chosen_language}" if request.chosen_language else ""
    return request.renderer, request.language, request.base_path + root, query


@lru_cache(maxsize=128)  # A fifth of the time of a page. What a role may do is written in the code.
def _of_merchant(
    renderer: Renderer,
    language: str,
    root: str,
    query: str,
    sections: tuple[MerchantPage, ...],
    current: MerchantPage | None,
    role: MerchantRole,
    merchant_id: MerchantId,
    env: Environment,
) -> Navigation:
    menu = [
        _entry(renderer, language, f"{root}/{merchant_id}/{env}{page.path}{query}", page, page is current)
        for page in sections
        if may_as_merchant(role, page.right, env)
    ]
    switch = []
    for other in reversed(ENVS):
        # To the same section in the other environment, or to its first page if this person may not open that.
        opens = current is not None and may_as_merchant(role, current.right, other)
        path = current.path if current and opens else first_path(role, other)
        text = str(renderer.text(language, f"env.{other}"))
        switch.append(MenuEntry(text, f"{root}/{merchant_id}/{other}{path}{query}", other == env, other))
    return _navigation(renderer, language, menu, switch)


@lru_cache(maxsize=128)
def _of_staff(
    renderer: Renderer,
    language: str,
    root: str,
    query: str,
    sections: tuple[StaffPage, ...],
    current: StaffPage | None,
    role: StaffRole,
) -> Navigation:
    menu = [
        _entry(renderer, language, f"{root}{page.path}{query}", page, page is current)
        for page in sections
        if may_as_staff(role, page.right)
    ]
    return _navigation(renderer, language, menu, ())


def _navigation(
    renderer: Renderer, language: str, menu: Sequence[MenuEntry], environments: Sequence[MenuEntry]
) -> Navigation:
    macros = renderer.macros(language, "_menu.html")
    return Navigation(
        menu=tuple(menu),
        environments=tuple(environments),
        search=next((entry.href for entry in menu if entry.name == "payments"), None),
        rail=macros.rail(menu),
        dock=macros.dock(menu, environments),
    )


def _entry(renderer: Renderer, language: str, href: str, page: MerchantPage | StaffPage, is_current: bool) -> MenuEntry:
    merchants = isinstance(page, MerchantPage)
    name = page.menu or ""
    text = str(renderer.text(language, ("nav." if merchants else "admin_nav.") + name))
    group = next(group for group, names in (MERCHANT_MENU if merchants else STAFF_MENU).items() if name in names)
    docked = name in (_DOCK if merchants else _STAFF_DOCK)
    return MenuEntry(text, href, is_current, name, group, docked)
