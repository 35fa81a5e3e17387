"""The first page: the merchants that somebody works for. Who works for one is sent on to it, the staff to
the back office."""

from starlette.responses import Response

from guichet.console.page_request import ConsoleRequest


async def show(request: ConsoleRequest) -> Response:
    _, user = request.signed_in
    if user.staff_role is not None:
        return request.redirect(request.admin_url(""))
    if len(request.memberships) == 1:
        return request.redirect(request.first_page(*request.memberships[0]))
    return request.page("home.html")
