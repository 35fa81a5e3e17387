"""Bodies are read exactly: numbers as integers or Decimals, texts character by character; what is not JSON is refused.

Source: docs/decisions.md, D6 and D8.
"""

import json
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from guichet.domain.errors import InvalidRequest
from guichet.schemas.body_fields import raw_has_bad_text, raw_member
from guichet.schemas.validation import MAX_DEPTH, parse_object

#: JSON text of a value → what it is read as. Beyond 40 digits an integer is a Decimal.
VALUES: dict[bytes, object] = {
    b"5000": 5000,
    b"-0": 0,
    b"-12": -12,
    b"18446744073709551616": 2**64,
    b"-9223372036854775809": -(2**63) - 1,
    b"9" * 40: int("9" * 40),
    b"9" * 41: Decimal("9" * 41),
    b"-" + b"9" * 39: int("-" + "9" * 39),
    b"-" + b"9" * 40: Decimal("-" + "9" * 40),
    b"9" * 5000: Decimal("9" * 5000),
    b"12.50": Decimal("12.50"),
    b"-0.0": Decimal("-0.0"),
    b"1e3": Decimal("1e3"),
    b"1E-7": Decimal("1E-7"),
    b"1e400": Decimal("1e400"),
    b"0." + b"1" * 60: Decimal("0." + "1" * 60),
    b"1e99999999999999999999999999": Decimal("NaN"),
    b"true": True,
    b"null": None,
    b'"x"': "x",
    b'{"x":1,"x":2}': {"x": 2},
    b'{"\\u0000":"\\u0000"}': {"\0": "\0"},
    b'"\\ud800"': "\ud800",
    b'"\\udc00\\ud800"': "\udc00\ud800",
    b'"\\ud83d\\ude00\\u00e9\\/\\b\\f\\n\\r\\t\\"\\\\"': '😀é/\b\f\n\r\t"\\',
    b" \t\r\n[ 1 , {} ] \n": [1, {}],
    '"Awa 😀\u2028\x7f"'.encode(): "Awa 😀\u2028\x7f",
}
MALFORMED = [
    b'{"a":NaN}',
    b'{"a":Infinity}',
    b'{"a":-Infinity}',
    b'{"a":01}',
    b'{"a":-}',
    b'{"a":1.}',
    b'{"a":.5}',
    b'{"a":+1}',
    b'{"a":1,}',
    b'{"a":1}{}',
    b'{"a":1}\0',
    b'{"a":1}\x0b',
    b'{"a":"\t"}',
    b'{"a":"\0"}',
    b'{"a":"\\x41"}',
    b'{"a":"\\u12 4"}',
    b'{"a":"\xff"}',
    b'{"a":"\xed\xa0\x80"}',
    b'{"\xff":1}',
    b'\xef\xbb\xbf{"a":1}',
    b"{'a':1}",
    b"{a:1}",
    b'{"a"',
    b"[]",
    b"1",
    b'"x"',
    b"null",
]


@pytest.mark.parametrize("text", VALUES)
def test_a_value_is_read_exactly(text: bytes) -> None:
    """Compared with their types, which `==` would not tell apart."""
    assert repr(parse_object(b' {"a" : ' + text + b"} ")) == repr({"a": VALUES[text]})


@pytest.mark.parametrize("body", MALFORMED)
def test_a_body_that_is_not_a_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        parse_object(body)


_NUMBERS = st.from_regex(r"\A-?(0|[1-9][0-9]{0,60})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?\Z")
_STRINGS = st.text(st.characters(), max_size=8).map(json.dumps)
_VALUES = st.recursive(
    _NUMBERS | _STRINGS | st.sampled_from(["true", "false", "null"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]")
        | st.lists(st.tuples(_STRINGS, inner), max_size=3).map(
            lambda members: "{" + ",".join(f"{key}: {value}" for key, value in members) + "}"
        )
    ),
    max_leaves=8,
)


@given(_VALUES)
def test_the_text_of_each_member_is_found_in_the_body(text: str) -> None:
    body = f'{{"b": [], "a":  {text} , "c": {{"a": 1}}}}'.encode()
    parse_object(body)
    assert raw_member(body, "a") == (None if text == "null" else text)


def _values(members: list[tuple[str, Any]]) -> list[Any]:
    """Of an object, also those whose key comes again."""
    return [value for _, value in members]


def _depth(value: Any) -> int:
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


@settings(deadline=None)
@given(_VALUES, st.integers(0, MAX_DEPTH + 2), _STRINGS)
@example('[{"": [],"": ""}]', MAX_DEPTH - 3, '""')
def test_only_the_depth_of_a_body_is_limited(text: str, levels: int, key: str) -> None:
    """Brackets in strings are none, and there may be many."""
    levels_of_lists = "[" * levels + text + "]" * levels
    brackets = json.dumps('"[{\\' * MAX_DEPTH)
    body = f'{{{key}: {brackets}, "a": {levels_of_lists}, "b": {brackets}}}'.encode()
    if 1 + levels + _depth(json.loads(text, object_pairs_hook=_values)) <= MAX_DEPTH:
        assert parse_object(body)["b"] == '"[{\\' * MAX_DEPTH
    else:
        with pytest.raises(InvalidRequest):
            parse_object(body)


#: Repeated to fill a body; each could make a pattern begin anew at every character.
HOSTILE: dict[str, bytes] = {
    "escaped quotation marks": b'\\"',
    "backslashes": b"\\",
    "empty strings": b'""',
    "strings of brackets": b'"["',
    "lists": b"[]",
    "lists of a string": b'[""],',
    "open lists": b"[",
    "spaces": b" ",
    "digits": b"9",
    "escapes": b"\\u0000",
}


def _seconds(body: bytes) -> float:
    """Of the processor, the least of some trials."""
    found = []
    for _ in range(5):
        began = time.process_time()
        with pytest.raises(InvalidRequest):
            parse_object(body)
        found.append(time.process_time() - began)
    return min(found)


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("begin", [b"", b'"'], ids=["bare", "in a string that has no end"])
def test_a_hostile_body_takes_time_in_proportion_to_its_size(begin: bytes, unit: bytes) -> None:
    """Sixteen times the size: 16 times as long, and not 256."""
    small, large = ((b'{"a":' + b"[" * MAX_DEPTH + begin + unit * (size // len(unit)))[:size] for size in (4000, 64000))
    assert _seconds(large) < 64 * max(_seconds(small), 50e-6)


def test_a_long_integer_stands_beside_an_escaped_character() -> None:
    """Python refuses to convert it; nothing needs its value."""
    assert not raw_has_bad_text(f'{{"a": {"9" * 5000}, "b": "\\ud83d\\ude00"}}')
