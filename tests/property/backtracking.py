"""How many steps a regular expression takes, counted and not timed: the backtracking that `re` does, step by step.

`re` itself counts nothing, and a measured time depends on what else the machine does. It reads the pattern as `re`
parses it and tries everything in the same order, without the shortcuts that `re` knows, so a pattern that is linear
here is linear there.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

_parser: Final[Any] = import_module("re._parser")
#: So many steps are no longer worth counting: the pattern is exponential.
TOO_MANY: Final = 50_000

_CHARACTERS: Final = ("LITERAL", "NOT_LITERAL", "ANY", "IN")

Then = Callable[[int], bool]
Item = tuple[Any, Any]


class TooManySteps(Exception):
    pass


class Matcher:
    """One pattern, applied to one text."""

    def __init__(self, pattern: str | bytes, flags: int, text: str | bytes) -> None:
        self.steps = 0
        self._items: list[Item] = list(_parser.parse(pattern, flags))
        self._text = text.decode("latin-1") if isinstance(text, bytes) else text
        self._groups: dict[int | None, str] = {}
        self._any = "" if flags & re.DOTALL else "\n"

    def search(self) -> bool:
        """As `search`, `sub`, `split` and `findall` look for matches: again at each character, and after each match."""
        found, start = False, 0
        with _deep_recursion():
            while start <= len(self._text):
                end = self._end_of_match(start)
                found = found or end is not None
                start = max(start + 1, end or 0)
        return found

    def fullmatch(self) -> bool:
        with _deep_recursion():
            return self._sequence(self._items, 0, 0, lambda end: end == len(self._text))

    def match(self) -> bool:
        with _deep_recursion():
            return self._end_of_match(0) is not None

    def _end_of_match(self, start: int) -> int | None:
        ends: list[int] = []

        def ended(end: int) -> bool:
            ends.append(end)
            return True

        return ends[0] if self._sequence(self._items, 0, start, ended) else None

    def _step(self) -> None:
        self.steps += 1
        if self.steps > TOO_MANY:
            raise TooManySteps

    def _sequence(self, items: Sequence[Item], index: int, at: int, then: Then) -> bool:
        if index == len(items):
            return then(at)
        self._step()
        operation, argument = items[index]

        def rest(end: int) -> bool:
            return self._sequence(items, index + 1, end, then)

        match str(operation):
            case "MAX_REPEAT" | "MIN_REPEAT":
                least, most, repeated = argument
                if str(operation) == "MAX_REPEAT" and len(repeated) == 1 and str(repeated[0][0]) in _CHARACTERS:
                    return self._repeat_character(repeated[0], at, int(least), int(most), rest)
                return self._repeat(
                    list(repeated), at, int(least), int(most), rest, lazy=str(operation) == "MIN_REPEAT"
                )
            case "SUBPATTERN":
                return self._sequence(list(argument[3]), 0, at, self._group(argument[0], at, rest))
            case "BRANCH":
                return any(self._sequence(list(each), 0, at, rest) for each in argument[1])
        end = self._end_of(items[index], at)
        return end is not None and rest(end)

    def _end_of(self, item: Item, at: int) -> int | None:
        """Where a part ends that matches in one way only; None when it does not."""
        operation, argument = str(item[0]), item[1]
        if operation in _CHARACTERS:
            return at + 1 if self._is_one_of(item, at) else None
        if operation == "AT":
            return at if self._is_at(str(argument), at) else None
        if operation in ("ASSERT", "ASSERT_NOT"):
            return at if self._looks_around(argument, at) is (operation == "ASSERT") else None
        if operation == "GROUPREF":
            again = self._groups[argument]
            return at + len(again) if self._text.startswith(again, at) else None
        raise NotImplementedError(operation)

    def _group(self, number: int | None, start: int, rest: Then) -> Then:
        """`rest`, once the text of the group is kept for what refers to it."""

        def ended(end: int) -> bool:
            self._groups[number] = self._text[start:end]
            return rest(end)

        return rest if number is None else ended

    def _repeat_character(self, item: Item, at: int, least: int, most: int, rest: Then) -> bool:
        end = at
        while end - at < most and self._is_one_of(item, end):
            self._step()
            end += 1
        for each in range(end, at + least - 1, -1):
            self._step()
            if rest(each):
                return True
        return False

    def _repeat(self, items: list[Item], at: int, least: int, most: int, rest: Then, *, lazy: bool = False) -> bool:
        self._step()

        def more(end: int) -> bool:
            return (end > at or least > 0) and self._repeat(items, end, max(0, least - 1), most - 1, rest, lazy=lazy)

        def again() -> bool:
            return most > 0 and self._sequence(items, 0, at, more)

        if least > 0:
            return again()
        return (rest(at) or again()) if lazy else (again() or rest(at))

    def _looks_around(self, argument: Any, at: int) -> bool:
        direction, items = argument
        start = at if direction > 0 else at - items.getwidth()[0]
        return start >= 0 and self._sequence(list(items), 0, start, lambda _: True)

    def _is_at(self, place: str, at: int) -> bool:
        text = self._text
        return {
            "AT_BEGINNING": at == 0,
            "AT_BEGINNING_STRING": at == 0,
            "AT_END": at == len(text) or text[at:] == "\n",
            "AT_END_STRING": at == len(text),
            "AT_BOUNDARY": _is_word(text[at - 1 : at] or " ") is not _is_word(text[at : at + 1] or " "),
        }[place]

    def _is_one_of(self, item: Item, at: int) -> bool:
        if at >= len(self._text):
            return False
        operation, argument, character = str(item[0]), item[1], self._text[at]
        if operation == "IN":
            is_negated = str(argument[0][0]) == "NEGATE"
            return any(_holds(each, character) for each in argument[is_negated:]) is not is_negated
        if operation == "ANY":
            return character != self._any
        return (ord(character) == argument) is (operation == "LITERAL")


def _holds(member: Item, character: str) -> bool:
    operation, argument = str(member[0]), member[1]
    if operation == "RANGE":
        return bool(argument[0] <= ord(character) <= argument[1])
    if operation == "CATEGORY":
        kind = str(argument).removeprefix("CATEGORY_")
        holds = {"DIGIT": character.isdecimal(), "SPACE": character.isspace(), "WORD": _is_word(character)}
        return holds[kind.removeprefix("NOT_")] is not kind.startswith("NOT_")
    return bool(argument == ord(character))


def _is_word(character: str) -> bool:
    return character == "_" or character.isalnum()


def characters_of(pattern: str | bytes, flags: int) -> list[str]:
    """One or two characters of each set that the pattern names, and some that it does not."""
    found: set[str] = {"\0", "!"}

    def collect(items: Any) -> None:
        for operation, argument in items:
            match str(operation):
                case "LITERAL" | "NOT_LITERAL":
                    found.add(chr(argument))
                case "RANGE":
                    found.update((chr(argument[0]), chr(argument[1])))
                case "CATEGORY":
                    found.add({"D": "7", "S": " ", "W": "w"}[str(argument).rpartition("_")[2][0]])
                case "IN":
                    collect(argument)
                case "MAX_REPEAT" | "MIN_REPEAT":
                    collect(argument[2])
                case "SUBPATTERN":
                    collect(argument[3])
                case "BRANCH":
                    for each in argument[1]:
                        collect(each)
                case "ASSERT" | "ASSERT_NOT":
                    collect(argument[1])

    collect(_parser.parse(pattern, flags))
    return sorted(each for each in found if not isinstance(pattern, bytes) or ord(each) < 256)


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """A repeated group is a few calls for each repetition."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
