"""What is sent, byte by byte: merchants' and providers' servers see these heads."""

import pytest

from guichet.http_client import Forbidden
from guichet.http_client.client import request_bytes, target_of

OURS = {"User-Agent": "Guichet/1.0", "Accept": "*/*"}


@pytest.mark.parametrize(
    ("method", "url", "headers", "body", "sent"),
    [
        (
            "POST",
            "https://Example.com:8443/a b/é?x=1&y=ü#part",
            {**OURS, "Content-Type": "application/json"},
            b"{}",
            "POST /a%20b/%C3%A9?x=1&y=%C3%BC HTTP/1.1\r\nHost: example.com:8443\r\nUser-Agent: Guichet/1.0\r\n"
            "Accept: */*\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        ),
        ("GET", "https://example.com", {}, None, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"),
        ("POST", "http://[::1]:80/", {}, b"", "POST / HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 0\r\n\r\n"),
        ("DELETE", "https://a.b/c", {"Host": "d"}, None, "DELETE /c HTTP/1.1\r\nHost: d\r\nContent-Length: 0\r\n\r\n"),
        ("PUT", "https://a.b/", {"X": "é"}, b"1", "PUT / HTTP/1.1\r\nHost: a.b\r\nX: é\r\nContent-Length: 1\r\n\r\n1"),
    ],
)
def test_a_request(method: str, url: str, headers: dict[str, str], body: bytes | None, sent: str) -> None:
    assert request_bytes(method, target_of(url, False, False), headers, body) == sent.encode()


@pytest.mark.parametrize("ending", ["\r\n", "\n", "\r", "\0"])
@pytest.mark.parametrize("header", [("X{}Y", "1"), ("X", "1{}Y: 2"), ("X", "1{}")])
def test_no_header_ends_early(header: tuple[str, str], ending: str) -> None:
    name, value = (part.format(ending) for part in header)
    with pytest.raises(Forbidden):
        request_bytes("POST", target_of("https://example.com/", False, False), {**OURS, name: value}, b"1")
