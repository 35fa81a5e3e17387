"""What a member of the team is mailed about payments, and whether customers get their receipts by mail."""

from typing import Literal

from starlette.responses import Response

from guichet.accounts.payment_mails import choices, choose_own, choose_receipts
from guichet.console.page_request import MerchantRequest
from guichet.domain.mails import PAYMENT_MAILS, PaymentMails
from guichet.pages.fields import Fields, Lenient


class MailsForm(Fields):
    """`own` and `receipts`: the choice of each form."""

    act: Lenient[Literal["own", "receipts"]] = None
    own: Lenient[PaymentMails] = None
    receipts: Lenient[Literal["yes"]] = None


async def show(request: MerchantRequest) -> Response:
    own, receipts = await choices(request.db, request.merchant.id, request.person.id)
    return request.page("mails.html", own=own, receipts=receipts, offered=PAYMENT_MAILS)


async def change(request: MerchantRequest) -> Response:
    form = await request.form(MailsForm)
    if form.act is None:
        return await show(request)
    async with request.db.transaction() as tx:
        if form.act == "receipts":
            request.require("team.change")
            sent = form.receipts is not None
            await choose_receipts(tx, request.merchant.id, sent=sent, actor=request.actor, now=request.now())
        else:
            await choose_own(request.ctx, tx, request.merchant, request.person, form.own, request.now())
    return request.done(request.merchant_url("/mails"), "mails_changed")
