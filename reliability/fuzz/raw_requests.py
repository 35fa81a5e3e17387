"""Bytes that may be no request, or several: contradicting lengths, smuggled requests, odd request lines, noise."""

from random import Random

from reliability.fuzz.known import Known
from reliability.fuzz.recorded import Probe, writes


def odd_framing(random: Random, known: Known) -> Probe:
    found = writes(random, known)
    body = found.body
    head = f"{found.method} {found.target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {known['test_key']}\r\n"
    inner = b"GET /v1/balance HTTP/1.1\r\nHost: x\r\n\r\n"
    size = f"{len(body):x}".encode()
    lines, content = random.choice(
        (
            (f"Content-Length: {len(body)}\r\nTransfer-Encoding: chunked", b"0\r\n\r\n" + inner),
            (f"Transfer-Encoding: chunked\r\nContent-Length: {len(body)}", size + b"\r\n" + body + b"\r\n0\r\n\r\n"),
            ("Transfer-Encoding: chunked, identity", b"0\r\n\r\n"),
            ("Transfer-Encoding: \x0bchunked", b"0\r\n\r\n"),
            ("Transfer-Encoding: xchunked", b"0\r\n\r\n"),
            (f"Content-Length: {len(body)}\r\nContent-Length: {len(body) + 1}", body + b"x"),
            (f"Content-Length: {random.choice((len(body) - 1, len(body) + 9, 0, 10**18))}", body),
            ("Content-Length: " + random.choice(("-1", "+5", "0x10", "1e3", "9" * 40, "٣", "", "5, 5")), body),
            ("Transfer-Encoding: chunked", size + b";ext=" + b"a" * 500 + b"\r\n" + body + b"\r\n0\r\nX: y\r\n\r\n"),
            (
                "Transfer-Encoding: chunked",
                random.choice((b"zz", b"-1", b"f" * 20, b" 5", b"")) + b"\r\n" + body + b"\r\n0\r\n\r\n",
            ),
            (
                "Transfer-Encoding: chunked",
                b"1\r\n" + b"\r\n1\r\n".join(bytes([byte]) for byte in body) + b"\r\n0\r\n\r\n",
            ),
            (f"Content-Length: {len(body)}\r\nUpgrade: websocket\r\nConnection: Upgrade", body),
            (f"Content-Length: {len(body)}\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings", body),
            (f"Content-Length: {len(body)}\r\n X-Folded: y", body),
            (f"Content-Length : {len(body)}", body),
            (f"Content-Length: {len(body)}\r\nX\0Y: z", body),
            (f"Content-Length: {len(body)}\nX-Bare: lf", body),
            (f"Content-Length: {len(body)}", body + inner * random.choice((1, 3, 20))),
        )
    )
    return Probe("framing", head.encode() + lines.encode() + b"\r\n\r\n" + content)


def odd_line(random: Random, known: Known) -> Probe:
    path = known["link_page"]
    line = random.choice(
        (
            *(f"GET {path}", "GET /", f"GET {path} HTTP/0.9", f"GET {path} HTTP/1.0", f"GET {path} HTTP/2.0", "GET"),
            *(f"GET {path} HTTP/1.1 x", f"get {path} HTTP/1.1", f"GET  {path}  HTTP/1.1", f"GET\t{path}\tHTTP/1.1"),
            *(f"X{'Y' * 300} / HTTP/1.1", "OPTIONS * HTTP/1.1", "CONNECT a.example:443 HTTP/1.1", "CONNECT / HTTP/1.1"),
            *(
                f"GET http://evil.example{path} HTTP/1.1",
                "GET //evil.example/v1/balance HTTP/1.1",
                f"GET {path}#x HTTP/1.1",
            ),
            *(
                "GET v1/balance HTTP/1.1",
                "GET /v1/\xe9 HTTP/1.1",
                "GET /\0 HTTP/1.1",
                "PRI * HTTP/2.0",
                "GET ? HTTP/1.1",
            ),
            *("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "\0\0\0\0", "\r\n\r\n\r\nGET / HTTP/1.1", "{}", "é" * 50),
        )
    )
    hosts = (
        "Host: 127.0.0.1\r\n",
        "",
        "Host: a\r\nHost: b\r\n",
        "Host: [::1\r\n",
        "Host: \xff\r\n",
        "Host: a:99999999\r\n",
    )
    return Probe("request lines", f"{line}\r\n{random.choice(hosts)}\r\n".encode("latin-1", "replace"))


def noise(random: Random, known: Known) -> Probe:
    return Probe("noise", random.randbytes(random.choice((1, 5, 50, 2_000))) + random.choice((b"", b"\r\n\r\n")))
