"""Sends the mails that are due, over SMTP (`aiosmtplib`). Without GUICHET_SMTP_URL they are only kept."""

import ipaddress
from collections.abc import Awaitable, Collection
from typing import Final
from urllib.parse import unquote, urlsplit

from guichet.clock import Instant
from guichet.context import AppContext
from guichet.db.queues.work_queue import Claim
from guichet.domain.records import Record
from guichet.logs import log
from guichet.mail.outbox import Mail, Outbox

#: Seconds for a whole conversation with the server.
_TIMEOUT: Final = 20.0


class SmtpServer(Record, frozen=True):
    """`start_tls`: None lets a loopback server do without TLS; any other must offer it."""

    host: str
    port: int
    username: str | None
    password: str | None
    tls: bool
    start_tls: bool | None

    @classmethod
    def of(cls, url: str) -> "SmtpServer":
        parts = urlsplit(url)
        tls, host = parts.scheme == "smtps", parts.hostname or ""
        return cls(
            host=host,
            port=parts.port or (465 if tls else 587),
            username=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
            tls=tls,
            start_tls=False if tls else None if _is_loopback(host) else True,
        )


class MailJobs:
    """The worker's jobs (`worker/queue_loop.py`)."""

    def __init__(self, ctx: AppContext, outbox: Outbox) -> None:
        self._ctx = ctx
        self._outbox = outbox
        self._server = SmtpServer.of(ctx.settings.smtp_url) if ctx.settings.smtp_url else None

    async def claim(self, now: Instant, until: Instant, most: int, saturated: Collection[str]) -> Claim[Mail]:
        return await self._outbox.claim(self._ctx.db, now, until, most)

    def partition(self, mail: Mail) -> str:
        return mail.kind

    async def work(self, mail: Mail) -> Awaitable[None] | None:
        ctx = self._ctx
        fault = await self._send(mail)
        if fault is None:
            await self._outbox.record_sent(ctx.db, mail, ctx.clock.now(), keep=ctx.settings.development)
        else:
            log.warning("mail.failed", mail=mail.id, kind=mail.kind, attempts=mail.attempts, error=fault)
            await self._outbox.record_failure(ctx.db, mail, fault, ctx.clock.now())
        return None

    async def _send(self, mail: Mail) -> str | None:
        """Why the server did not take the mail; None if it did, or if there is none to take it."""
        server, message, settings = self._server, mail.message, self._ctx.settings
        if server is None or message is None:
            return None
        import aiosmtplib  # noqa: PLC0415 - few processes ever send a mail

        from guichet.mail.messages import email  # noqa: PLC0415 - with Jinja and Babel

        try:
            await aiosmtplib.send(
                email(mail, message, settings.mail_from, self._ctx.clock.now(), settings.time_zone),
                hostname=server.host,
                port=server.port,
                username=server.username,
                password=server.password,
                use_tls=server.tls,
                start_tls=server.start_tls,
                timeout=_TIMEOUT,
            )
        except (aiosmtplib.SMTPException, OSError) as error:
            return f"{type(error).__name__}: {error}"
        return None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
