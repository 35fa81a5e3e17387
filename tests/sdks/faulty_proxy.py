"""A proxy between a library and the service that breaks a connection where it is told to."""

import http.client
import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

_REFERENCE: Final = "5f0c4a52-6d0e-4c8f-9a55-0d7f6c1b2e34"
_ANSWERED_HERE: Final = {
    "limited": (429, {"Retry-After": "1"}, b'{"success":false,"error":{"code":"rate_limited","message":"Trop."}}'),
    "limited for long": (
        429,
        {"Retry-After": "99"},
        b'{"success":false,"error":{"code":"rate_limited","message":"T"}}',
    ),
    "unavailable": (503, {"Content-Type": "text/html"}, b"<h1>503 Service Unavailable</h1>"),
    "portal": (200, {"Content-Type": "text/html"}, b"<h1>Connect to the Wi-Fi</h1>"),
    "failed for good": (
        500,
        {},
        f'{{"success":false,"error":{{"code":"server_error","message":"E","reference":"{_REFERENCE}"}}}}'.encode(),
    ),
}


@dataclass
class FaultyProxy:
    """`faults` are those of the next requests, in their order; afterwards requests pass.

    `cut`, `half` and `silence` send the request to the service, wait until it has answered, and give the library
    nothing, half of it, or nothing for some seconds. The others answer here. `seen`: (method, path, Idempotency-Key);
    `made`: what the service answered with a 201, also where the library heard nothing of it.
    """

    service_port: int
    #: The address the service sees, whose requests it counts.
    source: str
    before_passing: Callable[[], None] = lambda: None
    faults: deque[str] = field(default_factory=deque)
    seen: list[tuple[str, str, str | None]] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    url: str = ""

    def pass_on(self, method: str, path: str, headers: Any, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.service_port, timeout=30, source_address=(self.source, 0)
        )
        kept = {
            name: value for name, value in headers.items() if name.lower() not in ("connection", "transfer-encoding")
        }
        try:
            connection.request(method, path, body or None, kept)
            self.before_passing()
            response = connection.getresponse()
            answer = response.status, dict(response.headers), response.read()
            if response.status == http.client.CREATED:
                data = json.loads(answer[2])["data"]
                self.made.append(str(data.get("reference") or data["id"]))
            return answer
        finally:
            connection.close()


@contextmanager
def faulty_proxy(service_port: int, source: str) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(service_port, source)

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            proxy.seen.append((self.command, self.path, self.headers.get("Idempotency-Key")))
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            fault = proxy.faults.popleft() if proxy.faults else "pass"
            if fault in _ANSWERED_HERE:
                self.reply(*_ANSWERED_HERE[fault])
                return
            try:
                answer = proxy.pass_on(self.command, self.path, self.headers, body)
            except (OSError, http.client.HTTPException):
                fault = "cut"
            if fault == "silence":
                threading.Event().wait(2)
            if fault in ("cut", "silence"):
                self.connection.shutdown(socket.SHUT_RDWR)
            else:
                self.reply(*answer, half=fault == "half")

        do_GET = do_POST = do_PUT = handle_one

        def reply(self, status: int, headers: dict[str, str], body: bytes, half: bool = False) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in ("content-length", "connection", "server", "date"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if half else body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    proxy.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
