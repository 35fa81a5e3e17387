"""The Markdown of our own descriptions as HTML: CommonMark with tables, by markdown-it-py; HTML in it is text."""

import re
import unicodedata
from itertools import pairwise
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markupsafe import Markup

#: French puts a space before these marks, and a line must not begin with one of them.
_SPACE_BEFORE_MARK: Final = re.compile(r" (?=[;:!?»])")


def inline(text: str) -> Markup:
    """One paragraph, without its element."""
    return Markup(_MARKDOWN.renderInline(text))  # noqa: S704 - the renderer escapes HTML


def blocks(text: str) -> Markup:
    """A whole text. Headings get an `id`; each cell of a table carries its header, which narrow screens show."""
    return Markup(_MARKDOWN.render(text))  # noqa: S704 - the renderer escapes HTML


def headings(text: str) -> list[tuple[str, str]]:
    """The anchors and titles of the headings, in order."""
    opened = pairwise(_MARKDOWN.parse(text))
    titles = [content.content for opening, content in opened if opening.type == "heading_open"]
    return [(anchor(title), title) for title in titles]


def anchor(title: str) -> str:
    """`Clés et environnements` → `cles-et-environnements`."""
    plain = unicodedata.normalize("NFD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def _no_break_spaces(state: StateCore) -> None:
    for token in state.tokens:
        for child in token.children or ():
            if child.type == "text":
                child.content = _SPACE_BEFORE_MARK.sub("\u00a0", child.content)


def _heading_ids(state: StateCore) -> None:
    for token, content in pairwise(state.tokens):
        if token.type == "heading_open":
            token.attrSet("id", anchor(content.content))


def _cell_labels(state: StateCore) -> None:
    header: list[str] = []
    column = 0
    for token, content in pairwise(state.tokens):
        if token.type == "thead_open":
            header = []
        elif token.type == "tr_open":
            column = 0
        elif token.type == "th_open":
            token.attrSet("scope", "col")
            header.append(content.content)
        elif token.type == "td_open":
            token.attrSet("data-label", header[column])
            column += 1


def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    for rule in (_no_break_spaces, _heading_ids, _cell_labels):
        markdown.core.ruler.push(rule.__name__, rule)
    return markdown


_MARKDOWN: Final = _markdown()
