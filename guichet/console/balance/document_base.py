"""What the PDF documents of a merchant have in common."""

from typing import Any

from guichet.console.visit import Visit
from guichet.domain.merchants import Environment
from guichet.pages.pdf import PdfDocument


def plain(visit: Visit, key: str, **values: Any) -> str:
    """A text without the escapes of a page."""
    return visit.text(key, **values).unescape()


def new_document(visit: Visit, env: Environment, title: str) -> PdfDocument:
    banner = f"{plain(visit, 'base.test')} · {plain(visit, 'base.test_text')}" if env == "test" else None
    return PdfDocument(title, visit.language, visit.console.public_url, banner)
