"""The merchant's guide as the service shows it: whole at `/docs/guide`, and some of its chapters in `/docs`.

Its text is docs/guide-marchand.md, which the package contains. Links in it are written for that file: `#chapter` as
hosts of Git repositories name it, and `/docs` or `/openapi.json` of the service.
"""

import re
from importlib import resources
from typing import Final

from guichet.api import markdown

#: The chapters that `/docs` repeats: what no field of the OpenAPI document tells.
CHAPTERS: Final = (
    "Obtenir et changer une clé",
    "Devise de l'opérateur",
    "Carte dont la réponse s'est perdue",
    "Suivre un paiement",
    "Ordre et répétition",
    "Vérifier la signature",
    "Dates et fuseaux horaires",
    "Que dire au client",
)
_LINK: Final = re.compile(r"\]\((?:#(?P<chapter>[^)]+)|/(?P<path>docs[^)]*|openapi\.json))\)")


def guide() -> str:
    """The whole guide in Markdown, its links as `/docs/guide` needs them."""
    text = _text()
    return _with_links(text, {slug: f"#{anchor}" for slug, anchor in _anchors(text).items()}, root="../")


def chapters() -> str:
    """CHAPTERS in Markdown, each with a heading of level 2, their links as `/docs` needs them."""
    text = _text()
    chosen = "\n".join(markdown.chapter(text, title) for title in CHAPTERS)
    here = _anchors(chosen)
    elsewhere = {slug: f"docs/guide#{anchor}" for slug, anchor in _anchors(text).items()}
    return _with_links(chosen, elsewhere | {slug: f"#{anchor}" for slug, anchor in here.items()}, root="")


def _text() -> str:
    return resources.files("guichet").joinpath("data/guide-marchand.md").read_text(encoding="utf-8")


def _anchors(text: str) -> dict[str, str]:
    """How links in the file name each heading → the anchor that we give it."""
    return {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-"): markdown.anchor(title)
        for _, title in markdown.headings(text, deepest=6)
    }


def _with_links(text: str, addresses: dict[str, str], root: str) -> str:
    """`root`: the address of the service's root, as seen from the page. Raises KeyError for a heading that is not."""
    return _LINK.sub(lambda link: f"]({addresses[link['chapter']] if link['chapter'] else root + link['path']})", text)
