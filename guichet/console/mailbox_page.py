"""What would have been mailed, in development: nobody can read a mail that was sent to a test address."""

from starlette.responses import Response

from guichet.console.visit import Visit
from guichet.domain.errors import NotFound
from guichet.mail.messages import text_of


async def show(visit: Visit) -> Response:
    """From this machine only: the mails hold links that sign people in."""
    if not visit.is_from_this_machine:
        raise NotFound
    mails = [
        {"to": mail.recipient, "at": visit.date_time(mail.created_at), "text": text_of(mail.kind, mail.message)}
        for mail in await visit.console.accounts.outbox.latest(visit.console.ctx.db)
        if mail.message is not None
    ]
    return visit.show("mailbox.html", mails=mails)
