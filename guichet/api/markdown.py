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
    """A whole text. Headings get an `id`; each cell of a table carries its header, which narrow screens show; code,
    which may be wider than the page, can be scrolled with the keyboard."""
    html = _MARKDOWN.render(text).replace("<pre>", '<pre tabindex="0">')
    return Markup(html)  # noqa: S704 - the renderer escapes HTML


def headings(text: str, deepest: int = 2) -> list[tuple[str, str]]:
    """The anchors and titles of the headings of levels 2 to `deepest`, in order."""
    titles = [title for title, level, _ in _opened_headings(text) if 2 <= level <= deepest]
    return [(anchor(title), title) for title in titles]


def chapter(text: str, title: str) -> str:
    """The heading `title` and all that is under it; headings are raised so that this one has level 2.

    Raises ValueError if there is no such heading.
    """
    lines = text.splitlines()
    headings = _opened_headings(text)
    index = [name for name, _, _ in headings].index(title)
    _, own, start = headings[index]
    end = next((line for _, level, line in headings[index + 1 :] if level <= own), len(lines))
    for _, level, line in headings[index:]:
        if line < end:
            lines[line] = "#" * (level - own + 2) + lines[line].lstrip("#")
    return "\n".join(lines[start:end]).strip() + "\n"


def anchor(title: str) -> str:
    """`Clés et environnements` → `cles-et-environnements`."""
    plain = unicodedata.normalize("NFD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def _opened_headings(text: str) -> list[tuple[str, int, int]]:
    """The title, the level and the line (from 0) of each heading."""
    return [
        (content.content, int(opening.tag[1:]), opening.map[0])
        for opening, content in pairwise(_MARKDOWN.parse(text))
        if opening.type == "heading_open" and opening.map
    ]


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
