"""What reads a stranger's text before anything else has judged it: the function, texts with a place for whatever a
stranger puts there, and the text for which it does most. `test_reading.py` tries them all.

Strangers are those of `patterns.py`: whoever is not the author of the settings.
"""

import asyncio
import base64
import hashlib
from collections.abc import Callable
from ipaddress import ip_network
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from cryptography.hazmat.primitives.asymmetric import ec
from starlette.requests import Request, cookie_parser

from guichet import clock
from guichet.accounts import passkeys
from guichet.accounts.signed_tokens import SignedTokens
from guichet.accounts.webauthn_messages import Site
from guichet.back_office.anonymisation import without_customer
from guichet.checkout.tokens import FormTokens
from guichet.console import form_tokens
from guichet.console.links.new_link import link_body
from guichet.db.references import parse_reference
from guichet.domain.mails import is_email
from guichet.domain.money import parse_typed
from guichet.exports import cells
from guichet.ledger.provider_statement import StatementFormat, read_statement
from guichet.pages import days, fields, i18n
from guichet.pages.formatting import international_number
from guichet.pages.forms import is_from_elsewhere, read_form
from guichet.pages.uploads import read_upload
from guichet.printable import printable, printable_json
from guichet.providers.base import Callback
from guichet.providers.pawapay import http_message_signatures
from guichet.providers.paydunya.callbacks import read_callback
from guichet.providers.shared.fields import decode_json_object, full_number, hundredths, plain_text, text_or_none
from guichet.providers.shared.signatures import verify_signature
from guichet.sandbox.clock import read_duration
from guichet.schemas.body_fields import raw_member
from guichet.schemas.payment import PaymentBody
from guichet.schemas.validation import parse_object, validate
from guichet.server.content_encoding import choose_encoding
from guichet.server.request_context import ClientAddresses
from guichet.webhooks.sender import verify
from tests.providers.provider_under_test import NOW

_CLOCK: Final = clock.SystemClock()
_KEY: Final = ec.generate_private_key(ec.SECP256R1()).public_key()
_SECONDS: Final = NOW // clock.SECOND
_TOKENS: Final = FormTokens(["key"], _CLOCK)
_DEVICES: Final = SignedTokens(["key"], "known browsers", clock.DAY, _CLOCK)


class Reader(NamedTuple):
    """`read` takes bytes as they come over the network. `forms`: with `%s` where anything may stand. `worst`: the text
    for which it does most, of about so many characters."""

    read: Callable[[bytes], object]
    forms: tuple[str, ...]
    worst: Callable[[int], str]


def _text(content: bytes) -> str:
    """As forms and queries are read: no halves of surrogate pairs, but everything else."""
    return content.decode("utf-8", "replace")


def _header(content: bytes) -> str:
    return content.decode("latin-1")


def _request(body: bytes, headers: dict[str, bytes]) -> Request:
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 9),
        "headers": [(name.encode(), value) for name, value in headers.items()],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request(scope, receive)


def _body(content: bytes) -> object:
    return validate(PaymentBody, parse_object(content), {"raw": content, "development": False})


def _upload(content: bytes) -> object:
    request = _request(content, {"content-type": b"multipart/form-data; boundary=b"})
    return asyncio.run(read_upload(request, 100_000, lambda _: None))


def _upload_type(content: bytes) -> object:
    return asyncio.run(read_upload(_request(b"", {"content-type": content}), 100_000, lambda _: None))


def _pawapay(content: bytes) -> bool:
    body = b"{}"
    digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
    headers = {"Signature-Input": _header(content), "Signature": "a=:AAAA:", "Content-Digest": f"sha-256=:{digest}:"}
    return http_message_signatures.verify(_KEY, Callback("POST", "/x", headers, body), NOW)


def _client(content: bytes) -> str:
    addresses = ClientAddresses((ip_network("127.0.0.0/8"),), 64)
    return addresses.counted(dict(_request(b"", {"x-forwarded-for": content}).scope))


def _answered(content: bytes) -> object:
    return Site("a.example", "https://a.example").made_key(_text(content), b"challenge")


def _json(number: int) -> str:
    return '{"a":' + "[" * 33 + '"' + '\\"' * (number // 2)


_COVERED: Final = '"@method" "@path" "content-digest"'

READERS: Final[dict[str, Reader]] = {
    "body of the API": Reader(
        _body,
        (
            *(
                '{"amount": %s}',
                '{"amount": 5000, "metadata": {"a": %s}}',
                '{"phone_number": "%s"}',
                '{"a": "%s"}',
                "%s",
            ),
            *('{"return_url": "%s"}', '{"external_id": "%s"}', '{"currency": "%s"}', '{"operator": "%s"}'),
            *('{"customer": {"email": "%s"}}', '{"payment_mode_id": %s}', '{"metadata": %s}'),
        ),
        _json,
    ),
    "raw member": Reader(
        lambda content: parse_object(content) and raw_member(content, "metadata"),
        ('{"metadata": {"a": %s}}', '{"metadata": "%s", "b": %s}'),
        lambda n: "{" + '"metadata": [1, 2],' * (n // 19) + '"a": 1}',
    ),
    "JSON of providers": Reader(
        lambda content: [text_or_none(each) for each in (decode_json_object(content) or {}).values()],
        ('{"a": %s}', '{"a": "%s"}', "%s"),
        lambda n: '{"a": "' + "\\ud83d\\u0000" * (n // 12) + '"}',
    ),
    "amount of a provider": Reader(lambda content: hundredths(_text(content)), ("%s",), lambda n: "1" * n),
    "number of a provider": Reader(lambda content: full_number(_text(content)), ("+%s",), lambda n: "1 " * (n // 2)),
    "text for a provider": Reader(lambda content: plain_text(_text(content), 20), ("a%s",), lambda n: "é!" * (n // 2)),
    "signature with a secret": Reader(
        lambda content: verify_signature(_header(content), b"{}", secret="x", separator=b".", now=NOW),
        ("t=%s,v1=00", "t=%s", f"t={_SECONDS},v1=%s", "%s"),
        lambda n: f"t={_SECONDS}," + "v1=0," * (n // 5),
    ),
    "signature of our webhooks": Reader(
        lambda content: verify("x", _header(content), b"{}", _SECONDS),
        ("t=%s,v1=00", f"t={_SECONDS},v1=%s", "%s"),
        lambda n: f"t={_SECONDS}," + "".join(f"a{each}=0," for each in range(n // 8)),
    ),
    "signature of pawaPay": Reader(
        _pawapay,
        (f"a=({_COVERED});created=%s", f'a=({_COVERED});created="%s";expires=%s', f'a=({_COVERED} "%s")', "%s"),
        lambda n: f"a=({_COVERED}" + "".join(f' "b{each}"' for each in range(n // 8)) + f");created={_SECONDS}",
    ),
    "callback of PayDunya": Reader(
        lambda content: read_callback(Callback("POST", "/x", {}, content), "key"),
        ("data=%s", "data[invoice][token]=%s", '{"data": "%s"}', '{"data": %s}', "%s", "a%s=1"),
        lambda n: "data" + "[a" * (n // 2) + "=1",
    ),
    "form": Reader(
        lambda content: asyncio.run(read_form(_request(content, {}))),
        ("a=%s", "%s=1", "%s"),
        lambda n: "a=%" * (n // 3),
    ),
    "form with a file": Reader(
        _upload,
        (
            '--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\nx\r\n--b--\r\n',
            '--b\r\nContent-Disposition: form-data; name="a"; filename="%s"\r\n\r\nx\r\n--b--\r\n',
            "--b\r\nContent-Disposition: %s\r\n\r\nx\r\n--b--\r\n",
            '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n%s\r\n--b--\r\n',
            "%s",
        ),
        lambda n: '--b\r\nContent-Disposition: form-data; name="a"; filename="f"\r\n\r\n' + "\r\n--" * (n // 4),
    ),
    "type of a form with a file": Reader(
        _upload_type, ("multipart/form-data; boundary=%s", "%s", "multipart/form-data; %s"), lambda n: "a;b=" * (n // 4)
    ),
    "origin": Reader(
        lambda content: is_from_elsewhere(_request(b"", {"origin": content, "host": content}), "https://a.example"),
        ("%s", "https://%s", "[%s"),
        lambda n: "a" * n,
    ),
    "cookies": Reader(
        lambda content: cookie_parser(_header(content)),
        ("a=%s", 'a="%s"', "%s"),
        lambda n: 'a="' + "\\1" * (n // 2) + '"',
    ),
    "cookie of a known browser": Reader(
        lambda content: _DEVICES.nonce_of("1", _header(content)),
        ("a" * 43 + ".%s." + "a" * 43, "%s"),
        lambda n: "a" * n,
    ),
    "token of a payment form": Reader(
        lambda content: _TOKENS.read("x", _text(content)), ("a" * 22 + ".%s." + "a" * 22, "%s"), lambda n: "a" * n
    ),
    "token of a console form": Reader(
        lambda content: form_tokens.is_of("x", _text(content)), ("%s",), lambda n: "A" * (n // 4 * 4)
    ),
    "answer of a passkey": Reader(
        lambda content: passkeys._read(_text(content)),
        ('{"id": "a", "response": {"clientDataJSON": "%s"}}', '{"a": %s}', "%s"),
        lambda n: '{"id": "' + "\\u0041" * (n // 6),
    ),
    "key of a passkey": Reader(
        _answered,
        ('{"id": "YQ", "rawId": "YQ", "response": {"clientDataJSON": "%s", "attestationObject": "%s"}}', '{"a": %s}'),
        lambda n: '{"id": "' + "\\u0041" * (n // 6),
    ),
    "languages": Reader(
        lambda content: (i18n.negotiate.__wrapped__(_header(content)), i18n.region(_header(content))),
        ("fr;q=%s", "%s", "fr-%s"),
        lambda n: "a;q=1," * (n // 6),
    ),
    "compressions": Reader(
        lambda content: choose_encoding.__wrapped__(_header(content)), ("br;q=%s", "%s"), lambda n: "a;q=0," * (n // 6)
    ),
    "addresses behind a proxy": Reader(
        _client, ("%s", "1.2.3.4, %s", "fe80::1%%%s"), lambda n: "127.0.0.1," * (n // 10)
    ),
    "date": Reader(
        lambda content: clock.read_date(_text(content)),
        ("%s", "2026-11-20T10:15:%s", "2026-11-20T10:15:30+%s"),
        lambda n: "1" * n,
    ),
    "day": Reader(
        lambda content: (days.read_day(_text(content)), days.read_month(_text(content))),
        ("%s", "2026-%s-01"),
        lambda n: "1" * n,
    ),
    "row": Reader(lambda content: fields.row_id(_text(content)), ("%s", "1%s"), lambda n: "1" * n),
    "reference": Reader(lambda content: parse_reference(_text(content)), ("%s", "{%s}"), lambda n: "a" * n),
    "typed amount": Reader(
        lambda content: parse_typed(_text(content), 2), ("%s", "1.%s", "1%s"), lambda n: "1 " * (n // 2)
    ),
    "typed duration": Reader(lambda content: read_duration(_text(content)), ("%sd", "1h%s"), lambda n: "1h" * (n // 2)),
    "typed telephone number": Reader(
        lambda content: international_number(_text(content), "229"), ("%s", "00%s", "+%s"), lambda n: "1 " * (n // 2)
    ),
    "typed link": Reader(
        lambda content: link_body(
            dict.fromkeys(("amount", "description", "starts_at", "metadata"), _text(content)),
            "x",
            ZoneInfo("Africa/Lagos"),
        ),
        ("%s", '{"a": %s}', "2026-11-20T%s", "1.%s"),
        lambda n: "1 " * (n // 2),
    ),
    "e-mail address": Reader(
        lambda content: is_email(_text(content)[:254]),
        ("%s", "a@%s", "%s@a.example", "a@%s.example"),
        lambda n: "a." * (n // 2),
    ),
    "webhook that is made anonymous": Reader(
        lambda content: parse_object(content) and without_customer(content.decode()),
        ('{"data": {"metadata": {"a": %s}}}', '{"data": {"other": %s}}', '{"data": [%s, "%s"]}'),
        lambda n: '{"data": [' + "1," * (n // 2) + "1]}",
    ),
    "cell": Reader(lambda content: cells.text(_text(content)), ("%s", "a,%s"), lambda n: ",\n" * (n // 2)),
    "text for a screen": Reader(
        lambda content: (printable(_text(content)), printable_json(_text(content))), ("%s",), lambda n: "\u202e" * n
    ),
    "statement of a provider": Reader(
        lambda content: asyncio.run(read_statement(content, StatementFormat("orange", {}, {}))),
        ("reference;amount\n%s;1\n", "reference;amount;date\nx;%s;%s\n", "%s"),
        lambda n: "reference;amount\n" + "x;1\n" * (n // 4),
    ),
}
