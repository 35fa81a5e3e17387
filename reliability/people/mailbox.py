"""The mail server of a trial: takes every mail, and at times hangs up before it says so. It counts each mail by its
address and its `Message-ID`, as a receiver's program does."""

import asyncio
import random
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, Final

from aiosmtpd.smtp import SMTP, Envelope, Session

_INVITATION: Final = re.compile(r"https?://[^/\s]+(/console/invitation/\S+)")


@dataclass
class Mailbox:
    """`unsaid`: of a thousand mails, how many are taken by a server that then says that it could not."""

    seed: int
    port: int
    unsaid: int = 100
    #: How often each mail came, by address and Message-ID.
    received: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    #: The paths of the links of invitations, by address; the last one works.
    invitations: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    _server: asyncio.Server | None = None

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: SMTP(self, enable_SMTPUTF8=True), "127.0.0.1", self.port)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        content: Any = envelope.content
        mail = message_from_bytes(content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        to, number = str(mail["To"]), str(mail["Message-ID"])
        self.received[to][number] += 1
        if link := _INVITATION.search(mail.get_content()):
            self.invitations[to] = link[1]
        if self.received[to][number] == 1 and random.Random(f"{self.seed}/{to}/{number}").randrange(1000) < self.unsaid:
            self.counts["mails taken without saying so"] += 1
            return "451 try again later"
        return "250 OK"

    async def invitation(self, email: str) -> str:
        """The path of the link that was mailed to this address: waits for it."""
        while email not in self.invitations:
            await asyncio.sleep(0.1)
        return self.invitations[email]
