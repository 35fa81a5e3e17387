"""What every page of the console keeps to: its weight, and nothing in it but our own style, script and addresses."""

import base64
import gzip
import hashlib
import re
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urlsplit

from tests.console.pages import Page
from tests.tags import tags

#: Bytes of a page as it is sent.
MOST_BYTES: Final = 20_000
_ADDRESSES: Final = ("action", "data", "formaction", "href", "poster", "src", "srcset")
#: Other sites that a person may go on to, by a link that they press.
_SHARED_WITH: Final = ("wa.me",)
#: Addresses that lead nowhere on the network.
_LOCAL: Final = ("data", "mailto", "otpauth", "sms", "tel")
#: Of `tests.tags`; the standard library's parser took a third of what all requests of all roles cost.
_ANY_TAG: Final = "[a-zA-Z][a-zA-Z0-9-]*"
_OPENS: Final = re.compile("<[a-zA-Z]")
_INLINE: Final = re.compile(r"<(style|script)\b[^>]*>(.+?)</\1", re.DOTALL)


class _Rules(HTMLParser):
    def __init__(self, page: Page, public_host: str) -> None:
        super().__init__()
        self.faults: list[str] = []
        self._policy = page.headers["Content-Security-Policy"]
        self._hosts = ("", public_host)
        self.inside: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.inside = tag if tag in ("style", "script") else None
        self.faults += [f"<{tag} {name}>" for name in values if name == "style" or name.startswith("on")]
        if tag == "script" and not values.get("src"):
            self.faults.append("a script without an address")
        for name in _ADDRESSES:
            if name in values:
                self._check(tag, values[name])

    def handle_endtag(self, tag: str) -> None:
        self.inside = None

    def handle_data(self, data: str) -> None:
        digest = base64.b64encode(hashlib.sha256(data.encode()).digest()).decode()
        if self.inside == "script" or (self.inside == "style" and f"'sha256-{digest}'" not in self._policy):
            self.faults.append(f"an inline {self.inside}")

    def _check(self, tag: str, address: str) -> None:
        parts = urlsplit(address)
        allowed = (*self._hosts, *_SHARED_WITH) if tag == "a" else self._hosts
        if parts.scheme in _LOCAL:
            return
        if parts.scheme not in ("", "https") or parts.netloc not in allowed:
            self.faults.append(f"<{tag}> leads to {address}")


def faults_of(page: Page, public_url: str) -> list[str]:
    """What is wrong with an answer: none for a page that keeps to the rules, or for what is no page."""
    if not page.headers.get("Content-Type", "").startswith("text/html"):
        return []
    rules = _Rules(page, urlsplit(public_url).netloc)
    found = list(tags(page.text, _ANY_TAG))
    if len(found) == len(_OPENS.findall(page.text)):
        for tag, values in found:
            rules.handle_starttag(tag.lower(), [(name.lower(), value) for name, value in values.items()])
        for tag, text in _INLINE.findall(page.text):
            rules.inside = tag
            rules.handle_data(text)
    else:  # Something opens that the pattern does not read as a tag, but a browser may.
        rules.feed(page.text)
        rules.close()
    faults = rules.faults
    weight = len(gzip.compress(page.content, 6, mtime=0))
    if weight > MOST_BYTES:
        faults.append(f"{weight} bytes")
    if re.search(r"url\(|@import", page.text):
        faults.append("a style that loads something")
    return faults
