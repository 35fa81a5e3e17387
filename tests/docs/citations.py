"""Finds citations that lead nowhere, in code, tests and documentation.

- docs/contract.md, "Errors", "Limits": the file exists, and so does each heading.
- `guichet/clock.py`, `clock.py`: the file exists; its first folders may be left out.
- In backticks, a file of tests, two colons and a test; without the file for another test of the same one: it is there.
- [text](page.md), "Heading": the file exists, seen from the page that links to it, and so does each heading.
- D34: docs/decisions.md has its line. Decisions after the founders' have titles, cited as headings of that page.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("guichet", "guichet_simulator", "guichet_demo", "tests", "bench", "reliability", "docs")
CHECKED: Final = tuple(f"{folder}/" for folder in FOLDERS)
SINGLE_FILES: Final = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
DECISIONS: Final = "docs/decisions.md"
SUFFIXES: Final = frozenset({".py", ".md", ".toml", ".html"})

#: Texts that were never in the repository. Put together here, so that this file holds none of them.
FORBIDDEN: Final = (
    *(f"{name}.md" for name in ("operators", "spec", "design")),
    *(f"{article} spec" for article in ("the", "our")),
    *(f'{name}, "' for name in ("spec", "design")),
    "\N{SECTION SIGN}",
)


def _anywhere(phrase: str) -> str:
    """A pattern for a phrase up to the end of its last word, over the end of a line too."""
    return re.escape(phrase).replace(r"\ ", r"\s+") + (r"\b" if phrase[-1].isalpha() else "")


#: Searched for in the text's small letters: what stands before is looked at once for all phrases.
_FORBIDDEN: Final = re.compile(
    rf"(?<![\w-])(?=[{''.join({each[0] for each in FORBIDDEN})}])(?:{'|'.join(map(_anywhere, FORBIDDEN))})"
)
#: Headings after a path. There may be a line break before one or in it, and then the mark of a comment.
_QUOTED: Final = r'((?:,\s*(?:#:?\s+)?"[^"\n]+(?:\n[^"\n]+)?")*)'
_DOCUMENT: Final = re.compile(rf"(?<![\w/])(docs/[\w./-]*\w\.\w+)`?{_QUOTED}")
_LINK: Final = re.compile(rf"\]\(([^()\s:#]+)(?:#[\w-]*)?\){_QUOTED}")
_HEADING: Final = re.compile(r'"([^"]+)"')
_IN_BACKTICKS: Final = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:py|md|html|toml))`")
#: A test in backticks, by its file or as another one of the file that was cited last.
_CITED_TEST: Final = re.compile(r"`(?P<file>tests/[\w/]+\.py)?::(?P<name>test_\w+)`|`(?P<last>tests/[\w/]+\.py)`")
_TEST: Final = re.compile(r"^(?:async )?def (test_\w+)\(", re.MULTILINE)
_DECISION: Final = re.compile(r"(?<![\w/.])D(\d{1,3})(?!\w)")
_DECIDED: Final = re.compile(r"^- \*\*D(\d+)\*\* ", re.MULTILINE)
#: Titles may be cited like headings; the number that a decision had before is for those who look for it.
_DECISION_TITLE: Final = re.compile(r"^- \*\*([^*]+)\*\*(?:\s+\(was\s|\. )", re.MULTILINE)
#: The pages that may tell the numbers of before.
_TELL_OLD_NUMBERS: Final = (DECISIONS, "CHANGELOG.md")
_TITLE: Final = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_CODE_BLOCK: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_COMMENT_MARK: Final = re.compile(r"\s+(?:#:?\s+)?")

#: Where in a text, and what is wrong there.
Fault = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Library:
    """What can be cited: every file (path from the root), the headings of each page (and the titles of decisions), the
    numbers of the founders' decisions, the tests of each file."""

    files: frozenset[str]
    headings: Mapping[str, frozenset[str]]
    decisions: frozenset[int]
    tests: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def has(self, path: str) -> bool:
        """Whether a file has this path, or a path that ends with it."""
        return path in self.files or any(file.endswith(f"/{path}") for file in self.files)


def library(root: Path = ROOT) -> Library:
    paths = list(_citable(root))
    pages = {_name(path, root): path.read_text(encoding="utf-8") for path in paths if path.suffix == ".md"}
    decided = pages.get(DECISIONS, "")
    cited = {name: headings(text) for name, text in pages.items()}
    cited[DECISIONS] = headings(decided) | titles(decided)
    return Library(
        files=frozenset(_name(path, root) for path in paths),
        headings=cited,
        decisions=frozenset(int(number) for number in _DECIDED.findall(decided)),
        tests={_name(path, root): _tests_of(path) for path in paths if path.name.startswith("test_")},
    )


def _tests_of(path: Path) -> frozenset[str]:
    return frozenset(_TEST.findall(path.read_text(encoding="utf-8"))) if path.suffix == ".py" else frozenset()


def headings(page: str) -> frozenset[str]:
    return frozenset(title.replace("`", "") for title in _TITLE.findall(_CODE_BLOCK.sub("", page)))


def titles(decisions: str) -> frozenset[str]:
    """The titles of the decisions that have one."""
    return frozenset(_DECISION_TITLE.findall(decisions))


def sources(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """Name and text of each file whose citations are checked."""
    for path in _citable(root):
        name = _name(path, root)
        if name in SINGLE_FILES or (name.startswith(CHECKED) and path.suffix in SUFFIXES):
            yield name, path.read_text(encoding="utf-8")


def faults(name: str, text: str, known: Library) -> list[str]:
    """One sentence for each citation in `text` that leads nowhere; `name` is the file's path from the root."""
    found = [*_documents(text, known), *_files(text, known), *_named_tests(text, known)]
    if name not in _TELL_OLD_NUMBERS:
        found += _decisions(text, known)
    found += [
        (match.start(), f"{match[0]!r} is not a citation of a file here") for match in _FORBIDDEN.finditer(text.lower())
    ]
    if name.endswith(".md"):
        found += _links(name, text, known)
    return [f"{name}:{text.count(chr(10), 0, at) + 1}: {fault}" for at, fault in sorted(found)]


def _documents(text: str, known: Library) -> Iterator[Fault]:
    for match in _DOCUMENT.finditer(text):
        yield from _cited(match, match[1], known)


def _links(name: str, text: str, known: Library) -> Iterator[Fault]:
    """Links to other files: other addresses have a colon, and paths of the running service begin with a slash."""
    for match in _LINK.finditer(_CODE_BLOCK.sub(_blank, text)):
        if not match[1].startswith("/"):
            yield from _cited(match, posixpath.normpath(posixpath.join(posixpath.dirname(name), match[1])), known)


def _cited(match: re.Match[str], path: str, known: Library) -> Iterator[Fault]:
    """What is wrong with a path and the headings quoted after it (the second group)."""
    if path not in known.files and not any(file.startswith(f"{path}/") for file in known.files):
        yield match.start(), f"no file {path}"
        return
    for quoted in _HEADING.findall(match[2]):
        heading = _COMMENT_MARK.sub(" ", quoted)
        if path.endswith(".md") and heading not in known.headings[path]:
            yield match.start(), f'{path} has no heading "{heading}"'


def _files(text: str, known: Library) -> Iterator[Fault]:
    for match in _IN_BACKTICKS.finditer(text):
        if not known.has(match[1]):
            yield match.start(), f"no file {match[1]}"


def _named_tests(text: str, known: Library) -> Iterator[Fault]:
    last = ""
    for match in _CITED_TEST.finditer(text):
        last = match["file"] or match["last"] or last
        name = match["name"]
        if name is not None and name not in known.tests.get(last, frozenset()):
            yield match.start(), f"no test {last}::{name}"


def _decisions(text: str, known: Library) -> Iterator[Fault]:
    for match in _DECISION.finditer(text):
        if int(match[1]) not in known.decisions:
            yield match.start(), f"D{match[1]} is not in docs/decisions.md"


def _blank(block: re.Match[str]) -> str:
    """A code block's text, blank: what follows keeps its place."""
    return re.sub(r"[^\n]", " ", block[0])


def _citable(root: Path) -> Iterator[Path]:
    for folder in (*FOLDERS, "clients", "requirements"):
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and not {"__pycache__", "node_modules", "build"} & set(path.parts):
                yield path
    yield from (path for path in sorted(root.iterdir()) if path.is_file())


def _name(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()
