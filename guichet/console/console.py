"""What all pages of the console need, built once for the process."""

from functools import cache
from pathlib import Path
from typing import Final

from msgspec import field

from guichet.accounts.sign_in import Accounts, WithoutPassword
from guichet.context import AppContext
from guichet.domain.messages import TEXTS
from guichet.domain.records import Record
from guichet.pages.cookies import HostCookies
from guichet.pages.render import Renderer
from guichet.server.request_context import ClientAddresses

ROOT: Final = "/console"
ADMIN_ROOT: Final = "/admin"
ASSETS_PATH: Final = f"{ROOT}/assets"


@cache
def console_renderer() -> Renderer:
    """For the whole process: reading the texts takes a while."""
    return Renderer(Path(__file__).parent, ASSETS_PATH, *TEXTS, linked=True)


class Console(Record, frozen=True):
    """What all pages of the console need, built once for the process. `public_url` has no slash at the end; `base_path`
    is its path."""

    accounts: Accounts
    cookies: HostCookies
    addresses: ClientAddresses
    public_url: str
    base_path: str
    #: Only in a demonstration.
    without_password: WithoutPassword | None = None
    renderer: Renderer = field(default_factory=console_renderer)

    @property
    def ctx(self) -> AppContext:
        return self.accounts.ctx
