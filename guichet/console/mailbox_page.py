"""What would have been mailed, in development: nobody can read a mail that was sent to a test address."""

from starlette.responses import Response

from guichet.console.page_request import ConsoleRequest
from guichet.domain.errors import NotFound
from guichet.mail.messages import text_of


async def show(request: ConsoleRequest) -> Response:
    """From this machine only: the mails hold links that sign people in."""
    if not request.is_from_this_machine:
        raise NotFound
    mails = [
        (mail, text_of(mail.kind, mail.message, request.time_zone))
        for mail in await request.console.accounts.outbox.latest(request.db)
        if mail.message is not None
    ]
    return request.page("mailbox.html", mails=mails)
