"""What the service wrote to somebody."""

from guichet.db.engine import require
from guichet.mail.messages import text_of
from tests.console.conftest import ConsoleFixture


async def said_to(console: ConsoleFixture, recipient: str) -> list[tuple[str, str]]:
    """(kind, text) of the mails to this address, oldest first."""
    found = [mail for mail in await console.mails() if mail.recipient == recipient]
    return [(mail.kind, text_of(mail.kind, require(mail.message)).body) for mail in reversed(found)]
