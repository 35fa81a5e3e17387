"""The fast decoder of bodies reads what the exact one reads: the same values of the same types, or the same refusal."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guichet.domain.errors import InvalidRequest
from guichet.schemas import wire

BODIES = [
    b'{"a":5000,"b":-0,"c":-12,"d":true,"e":null,"f":"x"}',
    b'{"a":12.50,"b":-0.0,"c":1e3,"d":1E-7,"e":1e400,"f":1e99999999999999999999999999}',
    b'{"a":18446744073709551615,"b":18446744073709551616,"c":-9223372036854775808,"d":-9223372036854775809}',
    b'{"a":' + b"9" * 39 + b"}",
    b'{"a":' + b"9" * 40 + b"}",
    b'{"a":' + b"9" * 41 + b"}",
    b'{"a":-' + b"9" * 39 + b"}",
    b'{"a":-' + b"9" * 40 + b"}",
    b'{"a":' + b"9" * 5000 + b"}",
    b'{"a":0.' + b"1" * 60 + b"}",
    b'{"a":1,"b":2,"a":3}',
    b'{"a":{"x":1,"x":2},"":0}',
    b'{"a":"\\u0000","\\u0000":1}',
    b'{"a":"\\ud800","\\udfff":1}',
    b'{"a":"\\ud83d\\ude00","b":"\\u00e9\\/\\b\\f\\n\\r\\t\\"\\\\"}',
    b'{"a":"\\udc00\\ud800"}',
    b' \t\r\n{ "a" : [ 1 , 2 ] } \n',
    '{"prénom":"Awa 😀\u2028\x7f"}'.encode(),
]
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


def exact(body: bytes) -> str:
    """What the standard library reads, by the rules of decision D8; types included, which `==` would not tell apart."""
    return repr(json.loads(body, parse_float=_decimal, parse_int=_integer))


def _integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= 40 else Decimal(text)


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:
        return Decimal("NaN")


@pytest.mark.parametrize("body", BODIES)
def test_a_body_is_read_exactly(body: bytes) -> None:
    assert repr(wire.parse_object(body)) == exact(body)


@pytest.mark.parametrize("body", MALFORMED)
def test_what_is_not_an_object_in_json_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        wire.parse_object(body)


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
def test_any_value_is_read_exactly(text: str) -> None:
    body = f'{{"a": {text}}}'.encode()
    assert repr(wire.parse_object(body)) == exact(body)
