"""Texts that pretend to be JSON: every mistake that a client or an attacker can put into a body."""

import json
from typing import Final

from hypothesis import strategies as st

FIELDS: Final = (
    "amount",
    "currency",
    "operator",
    "payment_mode_id",
    "phone_number",
    "otp",
    "description",
    "external_id",
    "return_url",
    "callback_url",
    "metadata",
    "customer",
    "firstname",
    "lastname",
    "email",
    "address",
    "country",
    "reason",
    "type",
    "max_uses",
    "starts_at",
    "expires_at",
    "url",
    "rotate_secret",
)

#: What makes a request go far, so that odd fields meet good ones.
GOOD: Final = {
    "amount": "5000",
    "operator": '"mtn"',
    "phone_number": '"22997001234"',
    "customer": '{"firstname":"A","lastname":"B","email":"a@example.com"}',
    "description": '"Commande"',
    "metadata": '{"a": 1.0}',
    "url": '"https://shop.example/h"',
    "type": '"limit\\u00e9"',
    "max_uses": "3",
}

_ODD_NUMBERS: Final = (
    *("0", "-0", "1", "-1", "1.5", "12.0", "1e2", "1E+2", "1e-400", "1e400", "-1e400", "1e99999999999999999999"),
    *("5000." + "0" * 40 + "1", "0." + "9" * 300, "9" * 30, "9" * 4_000, "9" * 5_000, "2147483648"),
    *("9223372036854775807", "9223372036854775808"),
)
_NUMBERS: Final = st.sampled_from(_ODD_NUMBERS) | st.integers().map(str)
_NOT_JSON: Final = st.sampled_from(
    ["NaN", "-Infinity", "01", "+1", ".5", "undefined", "'a'", "", "tru", "[1,]", '"\x00"', '"\t"']
)
#: Of no valid text, or of a text that some field takes for something.
_ODD_TEXTS: Final = (
    *(r'"\u0000"', r'"\ud800"', r'"a\udfff"', r'"\ude00\ud83d"', r'"\ud83d\ude00"', r'"\\u0000"', r'"\x"', r'"\u12"'),
    *('"é"', '""', '"VISA"', '"coris"', '"free_sn"', '"EUR"', r'"limite\u0301"', r'"a@\ud800"', '"2026-11-20"'),
    *(r'"https://\u0000.example"', '"https://[::1"', '"https://a:b@c:99999/"'),
    *('"9999-12-31T23:59:59-23:59"', '"0001-01-01T00:00:00+23:59"'),
)
_ESCAPES: Final = st.sampled_from(_ODD_TEXTS)
_STRINGS: Final = st.text(max_size=300).map(json.dumps) | st.text(max_size=20).map(
    lambda t: json.dumps(t, ensure_ascii=False)
)
_SCALARS: Final = st.one_of(st.sampled_from(["null", "true", "false"]), _NUMBERS, _ESCAPES, _STRINGS)
_KEYS: Final = st.sampled_from([json.dumps(name) for name in FIELDS]) | _ESCAPES | _STRINGS


def _members(values: st.SearchStrategy[str], most: int) -> st.SearchStrategy[str]:
    """An object; a key may come twice."""
    pairs = st.lists(st.tuples(_KEYS, values), max_size=most)
    return pairs.map(lambda found: "{" + ",".join(f"{key}:{value}" for key, value in found) + "}")


def _nested(pair: tuple[str, int, str]) -> str:
    value, depth, kind = pair
    return ("[" if kind == "[" else '{"a":') * depth + value + ("]" if kind == "[" else "}") * depth


VALUES: Final = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4).map(lambda v: f"[{','.join(v)}]") | _members(inner, 4),
    max_leaves=12,
)
_DEEP: Final = st.tuples(VALUES, st.sampled_from([29, 30, 31, 32, 33, 2_000, 30_000]), st.sampled_from("[{")).map(
    _nested
)


@st.composite
def _mutated(draw: st.DrawFn) -> str:
    """A good body in which some fields were replaced, added or repeated."""
    members = [(json.dumps(name), text) for name, text in GOOD.items()]
    unknown = st.tuples(_ESCAPES | _STRINGS, VALUES)
    odd = draw(st.lists(unknown | unknown | st.tuples(_KEYS, VALUES | _DEEP | _NOT_JSON), min_size=1, max_size=3))
    return "{" + ",".join(f"{key}:{value}" for key, value in draw(st.permutations(members + odd))) + "}"


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_TEXTS: Final = (_mutated() | _mutated() | _members(VALUES, 6) | VALUES | _DEEP).map(_encoded)

#: Whole bodies: mostly JSON, sometimes cut off, sometimes no text at all.
BODIES: Final = st.one_of(
    _TEXTS,
    _TEXTS,
    st.tuples(_TEXTS, st.integers(1, 40)).map(lambda cut: cut[0][: -cut[1]]),
    st.tuples(_TEXTS, st.binary(min_size=1, max_size=4)).map(lambda two: two[0] + two[1]),
    st.binary(max_size=200),
    st.integers(65_530, 65_600).map(lambda size: b'{"description":"' + b"a" * (size - 17) + b'"}'),
)


def _percent(raw: bytes) -> str:
    return "".join(chr(byte) if chr(byte).isalnum() and byte < 128 else f"%{byte:02X}" for byte in raw)


#: One path segment, percent-encoded; also what is no text, and what other software takes for a path.
SEGMENTS: Final = st.one_of(
    st.binary(min_size=1, max_size=60).map(_percent),
    st.text(min_size=1, max_size=40).map(lambda text: _percent(text.encode("utf-8", "surrogatepass"))),
    st.uuids().map(str),
    st.integers().map(str),
    st.sampled_from(
        ["%2e%2e", "..%2f..%2fetc", "%00", "%ED%A0%80", "%", "%zz", "a;b=c", "~", "*", "'--", "%252F", "refund"]
    ),
)

_NAMES: Final = st.sampled_from(
    ["status", "external_id", "from", "to", "per_page", "page", "country", "type", "currency"]
)
_ARGUMENTS: Final = st.one_of(
    st.binary(max_size=40).map(_percent),
    st.sampled_from(
        ["1", "0", "100", "101", "9" * 30, "pending", "2026-11-20", "9999-12-31T23:59:59-23:59", "XOF", "%ED%A0%80"]
    )
    | st.sampled_from(
        ["0001-01-01T00:00:00%2B23:59", "2026-11-20T10:15:30 01:00".replace(" ", "%20"), "card", "bj", "%C4%B1"]
    ),
    st.datetimes().map(lambda moment: moment.isoformat()),
)

#: Query strings, with known names more often than not.
QUERIES: Final = st.lists(
    st.tuples(_NAMES | st.binary(max_size=8).map(_percent), _ARGUMENTS).map("=".join), max_size=5
).map("&".join)
