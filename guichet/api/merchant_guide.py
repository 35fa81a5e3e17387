"""The merchant's guides as the service shows them: whole at `/docs/guide` and `/docs/webhooks`, and some of their
chapters in `/docs`.

Their texts are docs/guide-marchand.md and docs/guide-webhooks.md, which the package contains. Links in them are written
for those files: `#chapter` as hosts of Git repositories name it, and `/docs` or `/openapi.json` of the service.
"""

import re
from importlib import resources
from typing import Final

from guichet.api import markdown

#: The last part of each page's address, and its name in lists of pages.
PAGES: Final = {"guide": "Guide du marchand", "webhooks": "Webhooks"}
_FILES: Final = {"guide": "guide-marchand.md", "webhooks": "guide-webhooks.md"}
#: The chapters that `/docs` repeats: what no field of the OpenAPI document tells.
CHAPTERS: Final = {
    "Obtenir et changer une clé": "guide",
    "Devise de l'opérateur": "guide",
    "Carte dont la réponse s'est perdue": "guide",
    "Suivre un paiement": "guide",
    "Ordre et répétition": "webhooks",
    "Vérifier la signature": "webhooks",
    "Dates et fuseaux horaires": "guide",
    "Que dire au client": "guide",
}
_LINK: Final = re.compile(
    r"\]\((?:(?P<file>guide-(?:marchand|webhooks)\.md)?(?:#(?P<chapter>[^)]+))?|/(?P<path>docs[^)]*|openapi\.json))\)"
)
#: What the texts call the address of the service.
_ADDRESS: Final = "http://127.0.0.1:8000"


def guide(page: str, public_url: str) -> str:
    """One of PAGES in Markdown, with its links as its address needs them, and the address of the service."""
    return _linked(_text(page), page, {name: "" if name == page else name for name in PAGES}, "../", public_url)


def chapters(public_url: str) -> str:
    """CHAPTERS in Markdown, each with a heading of level 2, their links as `/docs` needs them."""
    pages = {page: f"docs/{page}" for page in PAGES}
    here = {anchor for title in CHAPTERS for anchor in _anchors(_chapter(title)).values()}
    parts = (_linked(_chapter(title), page, pages, "", public_url, here) for title, page in CHAPTERS.items())
    return "\n".join(parts)


def _text(page: str) -> str:
    return resources.files("guichet").joinpath(f"data/{_FILES[page]}").read_text(encoding="utf-8")


def _chapter(title: str) -> str:
    return markdown.chapter(_text(CHAPTERS[title]), title)


def _anchors(text: str) -> dict[str, str]:
    """How links in a file name each heading → the anchor that we give it."""
    return {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-"): markdown.anchor(title)
        for _, title in markdown.headings(text, deepest=6)
    }


def _linked(
    text: str,
    page: str,
    pages: dict[str, str],
    root: str,
    public_url: str,
    here: frozenset[str] | set[str] = frozenset(),
) -> str:
    """`page`: the one that the text is from; `pages`: the address of each, and `root` that of the service's root, as
    seen from where it is shown; `here`: anchors of chapters that are shown with it. Raises KeyError for a heading that
    is not."""

    def address(link: re.Match[str]) -> str:
        if link["path"]:
            return f"]({root}{link['path']})"
        to = next((name for name, file in _FILES.items() if file == link["file"]), page)
        if not link["chapter"]:
            return f"]({pages[to]})"
        anchor = _anchors(_text(to))[link["chapter"]]
        return f"](#{anchor})" if anchor in here else f"]({pages[to]}#{anchor})"

    return _LINK.sub(address, text).replace(_ADDRESS, public_url)
