"""What strangers send is read in linear time, and whatever they send, nothing but a refusal is raised.

Time is not measured: the lines of Python that run are counted, those of libraries too. What regular expressions do is
counted in `test_patterns.py`.
"""

import sys
from contextlib import suppress
from types import FrameType
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guichet.accounts.errors import CodeRefused
from guichet.domain.errors import GuichetError
from guichet.ledger.provider_statement import UnreadableStatement
from tests.property.strangers_readers import READERS, Reader

#: What says "no" to a stranger.
_REFUSALS: Final = (GuichetError, CodeRefused, UnreadableStatement)
#: More digits than Python turns into a number, more levels than it can stand on, and what is nearly a number or a text.
HOSTILE: Final = (
    *(
        "1" * 5_000,
        "-" + "1" * 5_000,
        "0" * 5_000 + "1",
        "1e999999999",
        "1e-999999999",
        "1e99999999999999999999",
        "1" * 19,
    ),
    *(
        "nan",
        "NaN",
        "inf",
        "-Infinity",
        "0x10",
        "1_000",
        "\u00b2",
        "\u0661",
        "+1",
        "-0",
        "1.",
        ".1",
        "true",
        "null",
        "",
    ),
    *(
        "[" * 9_000,
        '{"a":' * 9_000,
        "]" * 9_000,
        '"' * 9_000,
        "\\" * 9_001,
        ";" * 9_000,
        "," * 9_000,
        "=" * 9_000,
        "%" * 9_000,
    ),
    *(
        "\0",
        "\x1b[2J",
        "\x85",
        "\r\n",
        "\n=1",
        "\t",
        "\u202e",
        "\U0001f600",
        "\ufffd",
        "\\u0000",
        "\\ud800",
        "\\udc00\\ud800",
    ),
    *(
        "%00",
        "%ED%A0%80",
        "%FF",
        "0000-00-00",
        "9999-12-31T23:59:59-23:59",
        "0001-01-01",
        "[::1",
        "[",
        "//",
        "a@[",
        "xn--a",
    ),
    *(
        "a" * 9_000,
        "\u0130" * 300,
        "a." * 4_000,
        "1,000",
        "+" * 9_000,
        "(" * 9_000,
        "/" * 9_000,
        "\x00" * 36,
        "AAAA",
        "====",
        "é",
    ),
)
_NAMES: Final = list(READERS)


def _read(reader: Reader, content: bytes) -> None:
    with suppress(*_REFUSALS):
        reader.read(content)


@pytest.mark.parametrize("name", _NAMES)
def test_nothing_that_a_stranger_sends_raises(name: str) -> None:
    reader = READERS[name]
    for form in (*reader.forms, reader.worst(1_000).replace("%", "%%")):
        for hostile in HOSTILE:
            text = form.replace("%s", hostile)
            _read(reader, text.encode())
            _read(reader, text.encode("latin-1", "replace"))

    @settings(max_examples=20, deadline=None, database=None, derandomize=True)
    @given(form=st.sampled_from(reader.forms), content=st.binary(max_size=60))
    def anything(form: str, content: bytes) -> None:
        before, _, after = form.partition("%s")
        _read(reader, before.encode() + content + after.replace("%s", "1").encode())

    anything()


@pytest.mark.parametrize("name", _NAMES)
def test_what_a_stranger_sends_is_read_in_linear_time(name: str) -> None:
    reader = READERS[name]
    _read(reader, reader.worst(400).encode())  # What is imported or made once is not counted.
    few, many = (_lines(reader, reader.worst(length).encode()) for length in (400, 1_600))
    assert many <= 6 * few + 200, "four times the text must not be more than about four times the work"


def test_the_count_sees_what_is_slow() -> None:
    slow = Reader(lambda content: [each for _ in content for each in content if each < 0], (), lambda n: "a" * n)
    assert _lines(slow, b"a" * 80) > 6 * _lines(slow, b"a" * 20) + 200


def _lines(reader: Reader, content: bytes) -> int:
    """How many instructions of Python run."""
    count, before = 0, sys.gettrace()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        _read(reader, content)
    finally:
        sys.settrace(before)
    return count
