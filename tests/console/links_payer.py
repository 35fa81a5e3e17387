"""A customer who pays the link that a page of the console shows, through the hosted page."""

import html
import re

from tests.console.conftest import ConsoleBrowser
from tests.console.pages import Page


def hosted_path(page: Page) -> str:
    """The path of the link whose address stands on this page."""
    found = re.search(r"https?://[^/\"<]+(/pay/\w{22}/\w{22})", html.unescape(page.text))
    assert found is not None, page.text
    return found[1]


async def pay(customer: ConsoleBrowser, path: str, phone: str, operator: str = "mtn", **more: str) -> Page:
    """Fills in the form of this operator; the page of the payment."""
    page = await customer.get(path)
    assert page.status == 200, page.text
    form = next(each for each in page.forms() if each.fields.get("operator") == operator)
    return await customer.post(path, {**form.fields, "phone_number": phone, **more})
