"""The tags of our own pages, by a pattern: the standard library's parser takes longer than a page took to make."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Final

_TAG: Final = r"""<({names})((?:\s+[^\s=>"']+(?:=(?:"[^"]*"|'[^']*'|[^\s"'>]+))?)*)\s*/?>"""
_ATTRIBUTE: Final = re.compile(r"""([^\s=>"']+)(?:=(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""")


def tags(text: str, *names: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each tag of these names that opens, with its attributes; one without a value has an empty one."""
    for found in re.finditer(_TAG.format(names="|".join(names)), text):
        attributes = _ATTRIBUTE.findall(found[2])
        yield found[1], {name: unescape(double or single or bare) for name, double, single, bare in attributes}
