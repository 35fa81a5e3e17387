"""The ways from a page of the console to the others: the menu, and the switch between live and test."""

from markupsafe import Markup

from guichet.domain.merchants import Environment
from guichet.domain.records import Record
from guichet.domain.roles import MerchantRole, may_as_merchant


class MenuEntry(Record, frozen=True):
    text: str
    href: str
    #: Whether it leads to the page that is shown, or to one above it.
    is_current: bool
    name: str
    group: str = ""
    #: Whether a telephone always shows it.
    docked: bool = False


class Navigation(Record, frozen=True):
    """What surrounds a page for one kind of reader; nothing on a page that has no menu. `search`: the address of the
    search for payments. `rail` and `dock`: the menu as a desktop and as a telephone show it."""

    menu: tuple[MenuEntry, ...] = ()
    environments: tuple[MenuEntry, ...] = ()
    search: str | None = None
    rail: Markup = Markup()
    dock: Markup = Markup()


def first_path(role: MerchantRole, env: Environment) -> str:
    """The overview; a cashier, who does not see what the shop takes in, begins at the cash desk."""
    return "" if may_as_merchant(role, "overview.view", env) else "/cash-desk"
