"""What hostile people type into fields and addresses. Markup holds `zq7`, by which an answer that repeats it unescaped
is seen; no value holds a word of the foreign merchant."""

from random import Random
from typing import Final
from urllib.parse import quote_plus

_MARKUP: Final = (
    *("<script>zq7(1)</script>", '"><img src=x onerror=zq7(1)>', "' autofocus onfocus=zq7(1) x='", "</textarea><zq7>"),
    *("<svg/onload=zq7(1)>", "--><zq7>", "]]><zq7>", "&lt;zq7&gt;", "<a href=javascript:zq7(1)>x</a>", "</style><zq7>"),
    *('{"a":"</script><zq7>"}', "<zq7 <zq7", "\u003czq7\u003e", "＜zq7＞", "&#60;zq7&#62;", "<!--zq7", "<b>zq7</b>"),
)
_TEMPLATES: Final = (
    *("{{6007*7}}", "${6007*7}", "<%= 6007*7 %>", "#{6007*7}", "{% raw %}{{6007*7}}", "{{''.__class__.__mro__}}"),
    *("%(name)s", "{0.__class__}", "%s%s%n", "{amount}", "{{ config }}", "{% include '/etc/passwd' %}"),
)
_FORMULAS: Final = (
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    '=HYPERLINK("http://evil.example")',
    "\t=1",
    "\r=1",
    "＝1",
    "=cmd|'/c'!A1",
)
_CONTROLS: Final = (
    *("\0", "a\0b", "\x1b[2J\x1b[31mred", "\x1b]0;title\x07", "\x9b31m", "\u202egnp.exe", "\u2066a\u2069", "\ufeff"),
    *(
        "\r\nSet-Cookie: a=b",
        "\r\n\r\n<zq7>",
        "a\nb",
        "\u2028",
        "\u200d" * 50,
        "\u0300" * 300,
        "\ud7ff\ue000",
        "\uffff",
    ),
    *("\x7f", "\x08\x08", "\u0000" * 20, "e\u0301", "\U0001f468\u200d\U0001f469", "ﷺ" * 30, "İ", "ß", "ǅ", "٣", "Ａ"),
)
_NUMBERS: Final = (
    *(
        "0",
        "-0",
        "-1",
        "-5000",
        "1.5",
        "1,5",
        "0.1",
        "1e3",
        "1e400",
        "-1e400",
        "NaN",
        "Infinity",
        "0x10",
        "1_000",
        "٣٣",
    ),
    *(
        "2147483648",
        "9223372036854775807",
        "9223372036854775808",
        "9" * 19,
        "9" * 30,
        "9" * 4400,
        "1 000",
        "1\u202f000",
    ),
    *("+5000", "5000.", ".5", "5000,00,00", "000005000", "99999999999999", "0.000000001", "²", "½", "1" + "0" * 40),
)
_DATES: Final = (
    *(
        "2026-02-30",
        "0000-00-00",
        "9999-12-31",
        "10000-01-01",
        "1900-01-01",
        "2026-11-23T25:61",
        "-2026-01-01",
        "today",
    ),
    *(
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
        "2026-W53-1",
        "20261123",
        "2026-11-23T00:00:00Z",
        "2026",
    ),
    *(
        "2026-13",
        "0000-01",
        "9999-12",
        "2026-1",
        "2099-12-31",
        "2000-01-01",
        "2026-11-23 00:00",
        "٢٠٢٦-١١-٢٣",
        "1e3-01",
    ),
)
_NAMES: Final = (
    *(
        "a@b",
        "@",
        "a@b@c.example",
        '"a b"@c.example',
        "a@[127.0.0.1]",
        "a@xn--.example",
        "é@é.example",
        "a" * 80 + "@b.example",
    ),
    *(
        "a@" + "b." * 120 + "example",
        "a\n@b.example",
        "<zq7>@b.example",
        "a@b.example,c@d.example",
        "a@b.example\r\nBcc: x@y",
    ),
    *(
        "../../etc/passwd",
        "Africa",
        "Africa/../Africa/Dakar",
        "localtime",
        "/etc/localtime",
        "posix/Africa/Dakar",
        "UTC\0",
    ),
    *(
        "javascript:zq7(1)",
        "//evil.example",
        "https://a:b@c:99999/",
        "http://[::1",
        "file:///etc/passwd",
        "data:text/html,<zq7>",
    ),
    *(
        "http://169.254.169.254/",
        "https://evil.example\\@a",
        "/console/../..//evil.example",
        "/\\evil.example",
        "/console\r\n",
    ),
    *(
        "' OR '1'='1",
        "'; DROP TABLE payments;--",
        "%",
        "_",
        "\\",
        "%%%___",
        "a' UNION SELECT 1--",
        "$1",
        ":name",
        "NULL",
        "null",
    ),
    *(
        "undefined",
        "true",
        "[]",
        "{}",
        '{"a":' * 800 + "1" + "}" * 800,
        '{"a":1,"a":2}',
        "[" * 3000,
        '{"a":1e400}',
        '{"a":"\\ud800"}',
    ),
    *(
        "owner",
        "admin",
        "live",
        "test",
        "succeeded",
        "XOF",
        "fr",
        "expired",
        "on",
        "yes",
        "csv",
        "xlsx",
        "all",
        "Actif",
    ),
)
_ALL: Final = (_MARKUP, _MARKUP, _TEMPLATES, _FORMULAS, _CONTROLS, _NUMBERS, _NUMBERS, _DATES, _NAMES)
#: Texts that are percent-encoded already, well or badly.
_RAW: Final = (
    *(
        "%",
        "%zz",
        "%0",
        "%00",
        "%ED%A0%80",
        "%ED%BF%BF",
        "%FF%FE",
        "%C0%AE",
        "%F4%90%80%80",
        "%E2%80%AE",
        "%u0041",
        "%25%32%35",
    ),
    *(
        "%C3",
        "+%2B+",
        "%0D%0AX:y",
        "%1B%5B2J",
        "%EF%BB%BF",
        "a;b=c",
        "a%26b%3Dc",
        "%3Czq7%3E",
        "%F0%9F%98%80",
        "%80" * 40,
    ),
)


def odd_text(random: Random) -> str:
    """What a person could type, or a program could send."""
    choice = random.random()
    if choice < 0.05:
        return random.choice(("a", "é", "<zq7>", "\0", "9", " ", "=")) * random.choice((256, 1_000, 5_000, 9_000))
    if choice < 0.12:
        return odd_text(random)[:3000] + odd_text(random)[:3000]
    return random.choice(random.choice(_ALL))


def odd_encoded(random: Random) -> str:
    """The same as it stands in a form or a query; some of it is encoded wrongly."""
    if random.random() < 0.2:
        return random.choice(_RAW)
    return quote_plus(odd_text(random).encode("utf-8", "surrogatepass"))


def odd_name(random: Random) -> str:
    """The name of a field or parameter that no form has, encoded."""
    names = (
        "__proto__",
        "csrf",
        "act",
        "role",
        "staff_role",
        "merchant",
        "id",
        "",
        "x" * 300,
        "a[b]",
        "user",
        "lang",
        "next",
    )
    return random.choice(names) if random.random() < 0.7 else odd_encoded(random)[:200]
