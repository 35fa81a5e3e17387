"""The geometry of the charts, in units of their SVG's view box. Pure arithmetic: texts are made by the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

#: As wide as the text column of a telephone, so that text in a chart has about the size of text beside it.
WIDTH: Final = 320
_COLUMNS_HEIGHT: Final = 96
_BAR_WIDTH: Final = 12
#: What is not zero can be seen.
_LEAST: Final = 2


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle; `title` is what it stands for."""

    x: int
    y: int
    width: int
    height: int
    title: str


def columns(values: Sequence[tuple[str, int]]) -> list[Bar]:
    """Upright bars side by side, for pairs of a title and a value (not negative). The highest is 96 units high."""
    most = max((value for _, value in values), default=0)
    step = WIDTH // len(values) if values else WIDTH
    bars = []
    for place, (title, value) in enumerate(values):
        height = _length(value, most, _COLUMNS_HEIGHT)
        bars.append(Bar(place * step + 1, _COLUMNS_HEIGHT - height, step - 2, height, title))
    return bars


def lines(values: Sequence[tuple[str, int]], line_height: int = 36) -> list[Bar]:
    """Lying bars below each other, each with room for a line of text above it. The longest is 320 units long."""
    most = max((value for _, value in values), default=0)
    return [
        Bar(0, place * line_height + 18, _length(value, most, WIDTH), _BAR_WIDTH, title)
        for place, (title, value) in enumerate(values)
    ]


def _length(value: int, most: int, longest: int) -> int:
    return max(_LEAST, value * longest // most) if value else 0
