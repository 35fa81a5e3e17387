"""A browser's name for itself, as a person says it: `Firefox · Android` in place of a line of versions."""

from typing import Final

#: What is looked for, in this order: browsers name their ancestors too.
_BROWSERS: Final = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("Chrome", "Chrome"),
    ("CriOS", "Chrome"),
    ("Safari", "Safari"),
)
_SYSTEMS: Final = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "Mac"),
    ("Linux", "Linux"),
)
_LONGEST: Final = 60


def browser_name(agent: str) -> str:
    """The known names in a `User-Agent`, else its beginning."""
    names = [next((name for mark, name in known if mark in agent), None) for known in (_BROWSERS, _SYSTEMS)]
    return " · ".join(name for name in names if name) or agent[:_LONGEST] or "–"
