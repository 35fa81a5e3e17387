"""What providers list of a period, for `guichet reconcile --fetch` and the page of the back office."""

from collections.abc import Callable, Sequence

from guichet.clock import Instant
from guichet.domain.messages import Answer
from guichet.domain.reconciliation import Line
from guichet.providers.base import Unknown
from guichet.providers.registry import Registry


class HistoryError(Exception):
    """No history can be had of this account."""

    def __init__(self, provider_account: str) -> None:
        super().__init__(provider_account)
        self.provider_account = provider_account


class NoHistory(HistoryError):
    """Its provider lists nothing: it exports files instead."""


class UnreadableHistory(HistoryError):
    """Its provider did not give the whole list. `raw`: what it answered instead."""

    def __init__(self, provider_account: str, raw: Answer) -> None:
        super().__init__(provider_account)
        self.raw = raw


async def histories_of(
    registry: Registry, names: Sequence[str], since: Instant, until: Instant, callback_url: Callable[[str], str]
) -> list[Line]:
    """Every transaction of these accounts from `since` to `until`, asked for now. `callback_url`: of an account.

    Raises NoHistory, UnreadableHistory.
    """
    lines: list[Line] = []
    histories = registry.histories()
    for name in names:
        if name not in histories:
            raise NoHistory(name)
        found = await histories[name].history(since, until, callback_url(name))
        if isinstance(found, Unknown):
            raise UnreadableHistory(name, found.raw)
        lines += found
    return lines
