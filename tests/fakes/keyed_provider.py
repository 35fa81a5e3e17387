"""A scripted provider whose account no setting names: only its key does, and the provider says whose it is."""

from dataclasses import dataclass

from guichet.providers.base import Unknown
from tests.fakes.scripted_provider import ScriptedProvider


@dataclass
class KeyedProvider(ScriptedProvider):
    """`identity`: what it says of its key; None: it publishes nothing. `reads`: how often it was asked."""

    fingerprint: str | None = "2:address:key-1"
    identified_by_key: bool = True
    identity: str | Unknown | None = "acct_1"
    reads: int = 0

    async def account_identity(self) -> str | Unknown | None:
        self.reads += 1
        return self.identity
