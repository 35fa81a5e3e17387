"""Fields of requests and responses that several providers share: references, free text, the customer's way back."""

import re
import unicodedata
from typing import Final
from urllib.parse import urlsplit

from guichet.providers.base import Charge

_NOT_PLAIN: Final = re.compile(r"[^A-Za-z0-9 ]+")


def text_or_none(value: object) -> str | None:
    """A reference, an address or a currency of a response, as text; None when it is absent, empty or something else."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) and value != "" else None


def plain_text(text: str, max_length: int) -> str:
    """Letters, digits and spaces only, which every provider accepts; "Paiement" when nothing is left.

    Source: docs/providers/README.md, "Rules common to every family".
    """
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return " ".join(_NOT_PLAIN.sub(" ", ascii_text).split())[:max_length].strip() or "Paiement"


def return_url(charge: Charge, configured: str | None, max_length: int = 2048) -> str | None:
    """Where the provider's page sends the customer back; None when no address is short enough.

    The first of: the merchant's page, the page configured for the account, the root of our own public address.
    """
    ours = urlsplit(charge.notify_url or "")
    pages = (charge.return_url, configured, f"{ours.scheme}://{ours.netloc}/" if ours.netloc else None)
    return next((page for page in pages if page and len(page) <= max_length), None)
