"""The ways as markdown, and as the sections of docs/architecture.md."""

import ast
import re
from typing import Final

from bench.ways.ways import WAYS, Walk
from tests.frozen.service import PACKAGE

PAGE: Final = PACKAGE.parent / "docs" / "architecture.md"
_SECTION: Final = re.compile(r"(<!-- way: (.+?) -->\n)(.*?)(<!-- /way -->)", re.DOTALL)


def sections(page: str) -> dict[str, str]:
    """The ways that a page shows, by their names."""
    return {name: text for _, name, text, _ in _SECTION.findall(page)}


def written(page: str, ways: dict[str, str]) -> str:
    """The page with these ways in the places that it has for them."""
    return _SECTION.sub(lambda found: f"{found[1]}{ways[found[2]]}{found[4]}", page)


def markdown(walks: dict[str, Walk]) -> dict[str, str]:
    """Each way: how much was counted, then its files in order with their first function. What a file says of itself
    stands where it appears first."""
    described: set[str] = set()
    return {way.name: _markdown(walks[way.name], described) for way in WAYS}


def _markdown(walk: Walk, described: set[str]) -> str:
    first: dict[str, str] = {}
    for function in walk.trace.functions:
        first.setdefault(function.file, function.name)
    counts = f"{len(first)} files, {len(walk.trace.functions)} functions, {walk.trace.hops} calls between files."
    if walk.answered:
        counts += f" The first {walk.answered} files have run when the request is answered."
    lines = [
        f"{number}. `{file}`, `{name}`{'' if file in described else f': {_summary(file)}'}"
        for number, (file, name) in enumerate(first.items(), 1)
    ]
    described |= set(first)
    beside = ", ".join(f"`{file}`" for file in sorted(walk.trace.not_counted))
    return "\n".join(["", counts, "", *lines, "", f"Not counted: {beside}.", "", ""])


def _summary(file: str) -> str:
    """The first sentence of the file's docstring."""
    text = ast.get_docstring(ast.parse((PACKAGE / file).read_text(encoding="utf-8"))) or "no docstring"
    sentence = re.split(r"(?<=\.)\s", " ".join(text.split("\n\n")[0].split()))[0]
    return f"{sentence.removesuffix('.')}."
