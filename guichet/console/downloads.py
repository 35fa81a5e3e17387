"""Files as attachments: nothing is stored by the browser's cache or shown in a page."""

import re
import unicodedata
from collections.abc import AsyncIterator
from urllib.parse import quote

from starlette.responses import Response, StreamingResponse

from guichet.pages.page_request import HEADERS


def file_name(*parts: str, suffix: str) -> str:
    """ASCII letters, digits and dashes: `releve-boutique-kora-2026-10.pdf`."""
    text = unicodedata.normalize("NFKD", "-".join(parts)).encode("ascii", "ignore").decode().lower()
    return f"{re.sub(r'[^a-z0-9]+', '-', text).strip('-')[:100]}.{suffix}"


def attachment(content: bytes, media_type: str, name: str, own_name: str = "") -> Response:
    """`own_name`: another one, in any script; `name` is for programs that do not know it (RFC 6266)."""
    headers = _headers(name)
    if own_name:
        headers["Content-Disposition"] += f"; filename*=UTF-8''{quote(own_name, safe='')}"
    return Response(content, headers=headers, media_type=media_type)


def streamed_attachment(content: AsyncIterator[bytes], media_type: str, name: str, size: int | None = None) -> Response:
    """`size` in bytes, if it is known: a browser then shows how far it is, and notices when something is missing."""
    headers = _headers(name) | ({} if size is None else {"Content-Length": str(size)})
    return StreamingResponse(content, headers=headers, media_type=media_type)


def _headers(name: str) -> dict[str, str]:
    policy = {"Content-Security-Policy": "default-src 'none'; sandbox"}
    return {**HEADERS, **policy, "Content-Disposition": f'attachment; filename="{name}"'}
