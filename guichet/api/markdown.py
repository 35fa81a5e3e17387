"""The little of CommonMark that our own descriptions use, as HTML: second-level headings, paragraphs, lists, tables,
`code` and **bold**. Everything else is text, and is escaped.
"""

import re
import unicodedata
from typing import Final

from markupsafe import Markup, escape

_MARKS: Final = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*")
#: French puts a space before these; a line must not begin with them.
_BEFORE: Final = re.compile(r" (?=[;:!?»])")
_BULLET: Final = re.compile(r"(?:- |(\d+)\. )")


def inline(text: str) -> Markup:
    """One line of text."""
    parts: list[Markup] = []
    end = 0
    for match in _MARKS.finditer(text):
        parts.append(_text(text[end : match.start()]))
        code, bold = match.groups()
        parts.append(Markup("<code>%s</code>") % code if code else Markup("<strong>%s</strong>") % inline(bold))
        end = match.end()
    return Markup("").join([*parts, _text(text[end:])])


def blocks(text: str) -> Markup:
    """Everything between two empty lines is one block."""
    return Markup("\n").join(_block(block) for block in re.split(r"\n\s*\n", text.strip()))


def headings(text: str) -> list[tuple[str, str]]:
    """The anchors and titles of the headings, in order."""
    titles = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    return [(anchor(title), title) for title in titles]


def anchor(title: str) -> str:
    """`Clés et environnements` → `cles-et-environnements`."""
    plain = unicodedata.normalize("NFD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def _text(text: str) -> Markup:
    return escape(_BEFORE.sub("\u00a0", text))


def _block(block: str) -> Markup:
    lines = block.splitlines()
    if block.startswith("## "):
        title = lines[0].removeprefix("## ")
        return Markup('<h2 id="{}">{}</h2>').format(anchor(title), inline(title))
    if block.startswith("| "):
        return _table(lines)
    if bullet := _BULLET.match(block):
        items = Markup("").join(Markup("<li>%s</li>") % inline(_BULLET.sub("", line, count=1)) for line in lines)
        return Markup("<{0}>{1}</{0}>").format("ol" if bullet[1] else "ul", items)
    return Markup("<p>%s</p>") % inline(" ".join(lines))


def _table(lines: list[str]) -> Markup:
    head, _, *rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    header = Markup("").join(Markup('<th scope="col">%s</th>') % inline(cell) for cell in head)
    body = Markup("").join(Markup("<tr>%s</tr>") % _row(head, row) for row in rows)
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(header, body)


def _row(head: list[str], cells: list[str]) -> Markup:
    """Each cell carries its header, which a narrow screen shows beside it."""
    labelled = zip(head, cells, strict=True)
    return Markup("").join(
        Markup('<td data-label="{}">{}</td>').format(label, inline(cell)) for label, cell in labelled
    )
