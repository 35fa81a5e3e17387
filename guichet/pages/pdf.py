"""PDF documents: A4 pages of headings, lines and tables, drawn with ReportLab in DejaVu Sans.

The font has the letters of the languages of our countries (ɛ, ɔ, ŋ, ɖ, ƒ) and French typography; `static/fonts` holds
it with its licence.

A document is drawn in a thread, one at a time, and only so many may wait: drawing is pure Python, and a year of
statements asked for at once must not slow down payments.
"""

import asyncio
import io
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from guichet.domain.errors import RateLimited
from guichet.domain.records import Record

_FONTS: Final = Path(__file__).parent / "static" / "fonts"
_REGULAR: Final = "DejaVuSans"
_BOLD: Final = "DejaVuSans-Bold"
#: A4, in points.
_WIDTH: Final = 595.28
_HEIGHT: Final = 841.89
_MARGIN: Final = 48.0
_BOTTOM: Final = 64.0
_BRAND: Final = (0.043, 0.353, 0.255)
_INK: Final = (0.086, 0.125, 0.106)
_SOFT: Final = (0.33, 0.38, 0.353)
_LINE: Final = (0.867, 0.886, 0.867)
#: Documents that may wait for their turn. One takes some tens of milliseconds.
_MOST_WAITING: Final = 20
_waiting: set[object] = set()


class PdfColumn(Record, frozen=True):
    """`share`: of the width of the page, in percent. Text on the left is cut where it is too long; figures on the right
    are written smaller."""

    title: str
    share: float
    align: Literal["left", "right"] = "left"


class PdfDocument:
    """Draws from the top to the bottom, on as many pages as it takes. Texts are plain, without markup."""

    def __init__(self, title: str, language: str, foot: str, banner: str | None = None) -> None:
        """`foot`: on every page beside its number; `banner`: on every page above everything, for the test
        environment."""
        _register_fonts()
        from reportlab.pdfgen.canvas import Canvas  # noqa: PLC0415 - half a second that no other page waits for

        self._file = io.BytesIO()
        # `invariant`: no date of the machine in the file.
        self._canvas: Any = Canvas(self._file, pagesize=(_WIDTH, _HEIGHT), invariant=1, lang=language)
        self._canvas.setTitle(title)
        self._canvas.setCreator("Guichet")
        self._foot = foot
        self._banner = banner
        self._page = 0
        self._y = 0.0
        self._begin_page()

    def heading(self, text: str, size: float = 18) -> None:
        self._room(size * 1.3 + 40)
        self._y -= size * 0.9 + 14
        self._draw(_MARGIN, text, size, bold=True, colour=_BRAND)
        self._y -= size * 0.4

    def paragraph(self, text: str) -> None:
        size = 9.5
        for line in _wrapped(text, _WIDTH - 2 * _MARGIN, _REGULAR, size):
            self._room(size * 1.5)
            self._y -= size * 1.45
            self._draw(_MARGIN, line, size, colour=_SOFT)

    def lines(self, pairs: Sequence[tuple[str, str]], *, strong_last: bool = False) -> None:
        """A label and a value on each line; a long value continues below."""
        size, indent = 10.0, 170.0
        self._y -= 4
        for place, (label, value) in enumerate(pairs):
            bold = strong_last and place == len(pairs) - 1
            font = _BOLD if bold else _REGULAR
            for number, line in enumerate(_wrapped(value, _WIDTH - 2 * _MARGIN - indent, font, size)):
                self._room(size * 1.8)
                self._y -= size * (1.8 if number == 0 else 1.4)
                if number == 0:
                    self._draw(_MARGIN, label, size, bold=bold, colour=_INK if bold else _SOFT)
                self._draw(_MARGIN + indent, line, size, bold=bold)

    def table(self, columns: Sequence[PdfColumn], rows: Sequence[Sequence[str]], *, strong_last: bool = False) -> None:
        """The titles are repeated on each page."""
        size, height = 8.5, 16.0
        self._room(3 * height)
        self._row(columns, [column.title for column in columns], size, height, bold=True, colour=_SOFT)
        for place, row in enumerate(rows):
            if self._y - height < _BOTTOM:
                self._next_page()
                self._row(columns, [column.title for column in columns], size, height, bold=True, colour=_SOFT)
            self._row(columns, row, size, height, bold=strong_last and place == len(rows) - 1)
        self._y -= 6

    def done(self) -> bytes:
        self._end_page()
        self._canvas.save()
        return self._file.getvalue()

    def _row(
        self,
        columns: Sequence[PdfColumn],
        row: Sequence[str],
        size: float,
        height: float,
        *,
        bold: bool = False,
        colour: tuple[float, float, float] = _INK,
    ) -> None:
        self._y -= height
        left, whole = _MARGIN, _WIDTH - 2 * _MARGIN
        for column, text in zip(columns, row, strict=True):
            width = whole * column.share / 100
            font, fits = _BOLD if bold else _REGULAR, width - 6
            if column.align == "right":  # Figures are never cut.
                smaller = size * min(1.0, fits / max(fits, _text_width(text, font, size)))
                self._draw(left, text, smaller, bold=bold, colour=colour, width=width - 2)
            else:
                self._draw(left, _cut(text, fits, font, size), size, bold=bold, colour=colour)
            left += width
        self._canvas.setStrokeColorRGB(*_LINE)
        self._canvas.line(_MARGIN, self._y - 4.5, _WIDTH - _MARGIN, self._y - 4.5)

    def _draw(
        self,
        x: float,
        text: str,
        size: float,
        *,
        bold: bool = False,
        colour: tuple[float, float, float] = _INK,
        width: float | None = None,
    ) -> None:
        """`width`: of the column to whose right side the text is moved."""
        self._canvas.setFont(_BOLD if bold else _REGULAR, size)
        self._canvas.setFillColorRGB(*colour)
        if width is None:
            self._canvas.drawString(x, self._y, text)
        else:
            self._canvas.drawRightString(x + width, self._y, text)

    def _room(self, height: float) -> None:
        if self._y - height < _BOTTOM:
            self._next_page()

    def _next_page(self) -> None:
        self._end_page()
        self._begin_page()

    def _begin_page(self) -> None:
        self._page += 1
        self._y = _HEIGHT - _MARGIN
        if self._banner is not None:
            self._canvas.setFillColorRGB(1, 0.847, 0.302)
            self._canvas.rect(0, _HEIGHT - 30, _WIDTH, 30, stroke=0, fill=1)
            self._y = _HEIGHT - 19
            self._draw(_MARGIN, self._banner, 9.5, bold=True)
            self._y = _HEIGHT - _MARGIN - 6
        self._draw(_MARGIN, "Guichet", 11, bold=True, colour=_BRAND)
        self._y -= 8

    def _end_page(self) -> None:
        self._y = 36.0
        width = _WIDTH - 2 * _MARGIN
        self._draw(_MARGIN, _cut(self._foot, width - 40, _REGULAR, 8), 8, colour=_SOFT)
        self._draw(_MARGIN, str(self._page), 8, colour=_SOFT, width=width)
        self._canvas.showPage()


async def drawn(draw: Callable[[], bytes]) -> bytes:
    """The document that `draw` makes, in the thread for documents. Raises RateLimited when too many wait."""
    if len(_waiting) >= _MOST_WAITING:
        raise RateLimited
    turn = object()
    _waiting.add(turn)
    try:
        return await asyncio.get_running_loop().run_in_executor(_thread(), draw)
    finally:
        _waiting.discard(turn)


@cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="pdf")


@cache
def _register_fonts() -> None:
    from reportlab.pdfbase import pdfmetrics  # noqa: PLC0415 - see PdfDocument
    from reportlab.pdfbase.ttfonts import TTFont  # noqa: PLC0415 - see PdfDocument

    for name in (_REGULAR, _BOLD):
        pdfmetrics.registerFont(TTFont(name, str(_FONTS / f"{name}.ttf")))


def _text_width(text: str, font: str, size: float) -> float:
    from reportlab.pdfbase.pdfmetrics import stringWidth  # noqa: PLC0415 - see PdfDocument

    return float(stringWidth(text, font, size))


def _cut(text: str, width: float, font: str, size: float) -> str:
    """As much of `text` as fits, with an ellipsis if that is not all."""
    if _text_width(text, font, size) <= width:
        return text
    while text and _text_width(f"{text}…", font, size) > width:
        text = text[:-1]
    return f"{text}…"


def _wrapped(text: str, width: float, font: str, size: float) -> list[str]:
    """Lines that fit; a word that is longer than a line is broken."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if _text_width(longer, font, size) <= width:
            lines[-1] = longer
            continue
        if lines[-1]:
            lines.append("")
        for character in word:
            if _text_width(lines[-1] + character, font, size) > width:
                lines.append("")
            lines[-1] += character
    return lines
