"""The form by which somebody who approves, or did lately, objects to a new approver. A mail leads to it, without a
sign-in."""

from starlette.responses import Response

from guichet.accounts import objections
from guichet.accounts.access_acts import subject_text
from guichet.accounts.errors import LinkUnusable
from guichet.console.forms import ReasonForm
from guichet.console.page_request import ConsoleRequest
from guichet.domain.audit_log import ActRefused


async def show(request: ConsoleRequest) -> Response:
    try:
        approval, user = await objections.find(request.ctx, request.path["secret"])
    except LinkUnusable:
        return _unusable(request)
    if request.chosen_language is None:
        request.language = user.language
    about = await subject_text(request.db, approval.subject)
    return request.page("objection.html", approval=approval, subject=about, email=user.email, done=False)


async def object_to(request: ConsoleRequest) -> Response:
    form = await request.form(ReasonForm)
    secret = request.path["secret"]
    try:
        _, user = await objections.find(request.ctx, secret)
        await objections.object_to(request.ctx, secret, form.reason or "")
    except (LinkUnusable, ActRefused):  # Somebody decided, perhaps in the same moment.
        return _unusable(request)
    if request.chosen_language is None:
        request.language = user.language
    return request.page("objection.html", done=True)


def _unusable(request: ConsoleRequest) -> Response:
    return request.page("message.html", status=410, name="objection_unusable", action=request.console_url("/"))
