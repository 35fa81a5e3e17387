"""What the PDF documents of a merchant have in common."""

from typing import Any

from guichet.console.page_request import ConsoleRequest
from guichet.domain.merchants import Environment
from guichet.pages.pdf import PdfDocument


def plain(request: ConsoleRequest, key: str, **values: Any) -> str:
    """A text without the escapes of a page."""
    return request.text(key, **values).unescape()


def new_document(request: ConsoleRequest, env: Environment, title: str) -> PdfDocument:
    banner = f"{plain(request, 'base.test')} · {plain(request, 'base.test_text')}" if env == "test" else None
    return PdfDocument(title, request.language, request.console.public_url, banner)
