"""What the folder of a provider declares about it: how an account is set up, what it serves, what marks its sandbox."""

from collections.abc import Callable, Collection, Mapping
from typing import Literal

from msgspec import field

from guichet.clock import Clock
from guichet.domain.messages import Message
from guichet.domain.records import Record
from guichet.http_client import HttpClient
from guichet.providers.base import Provider
from guichet.providers.shared.account_findings import AccountFinding
from guichet.providers.shared.client import ProviderAccount

Settings = Mapping[str, str]
#: How a provider learns where to send callbacks: it is told with each payment, it has one address for the account,
#: or it sends none.
CallbackAddress = Literal["each call", "one address", "none"]


class ProviderType(Record, frozen=True, kw_only=True):
    """`TYPE` in the `__init__.py` of each folder.

    `build` raises ValueError for settings that contradict each other or cannot work.
    """

    build: Callable[[ProviderAccount, HttpClient, Clock], Provider]
    #: The settings that an account must have and may have.
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    #: What is missing without an optional setting that matters.
    without: Mapping[str, AccountFinding] = field(default_factory=dict)
    #: The operators that an account with these settings can serve; None for any.
    operators: Callable[[Settings], Collection[str] | None] = lambda _: None
    callbacks: CallbackAddress = "one address"
    #: The hosts of the provider's sandbox or test bed, where no money moves.
    sandbox_hosts: tuple[str, ...] = ()
    #: What in the settings shows that the account is one of the provider's sandbox; None when nothing does.
    sandbox: Callable[[Settings], Message | None] = lambda _: None
    #: Whether the settings, some of which may be missing, tell a sandbox from the live side at all.
    tells_sandbox: Callable[[Settings], bool] = lambda _: True
    #: The columns of its statements by field, besides the field's own name (docs/providers/README.md, "Statements").
    statement: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
