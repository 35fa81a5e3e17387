"""Responses that break on the wire: a connection closed before the first byte, or in the middle of the body.

ASGI has no message for closing a connection. The server's transport is reached through the `send` function that the
application gets, which middlewares may have wrapped in closures. Where it cannot be found, the response is begun and
never finished: every ASGI server then closes the connection too.
"""

from collections.abc import Iterator
from typing import Any, Final, Protocol, runtime_checkable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

#: In practice there are a few wrappers; the limit only prevents an endless search.
_MAX_WRAPPERS: Final = 40


@runtime_checkable
class _Transport(Protocol):
    """What the transports of asyncio and uvloop share; they have no common base class."""

    def abort(self) -> None: ...

    def close(self) -> None: ...


class DroppedConnection(Response):
    """Closes the connection after the request was read, without sending a byte."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        transport = _find_transport(send)
        if transport is None:
            await _begin(send, 200, [(b"content-length", b"1000")])
            return
        transport.abort()
        await _wait_for_disconnect(receive)


class TruncatedResponse(Response):
    """Sends the status, the headers and half of the body of `whole`, then closes the connection."""

    def __init__(self, whole: Response) -> None:
        super().__init__(status_code=whole.status_code)
        self._whole = whole

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = bytes(self._whole.body) or b" " * 64
        headers = [(name, value) for name, value in self._whole.raw_headers if name != b"content-length"]
        await _begin(send, self._whole.status_code, [*headers, (b"content-length", str(len(body)).encode())])
        await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
        transport = _find_transport(send)
        if transport is not None:
            transport.close()
            await _wait_for_disconnect(receive)


async def _begin(send: Send, status: int, headers: list[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _wait_for_disconnect(receive: Receive) -> None:
    """Once the server knows that the connection is closed, it does not expect a response any more."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _find_transport(send: Send) -> _Transport | None:
    seen: list[object] = [send]
    for candidate in seen:
        transport = getattr(getattr(candidate, "__self__", None), "transport", None)
        if isinstance(transport, _Transport):
            return transport
        seen.extend(inner for inner in _wrapped_by(candidate) if not any(inner is known for known in seen))
        if len(seen) > _MAX_WRAPPERS:
            break
    return None


def _wrapped_by(wrapper: object) -> Iterator[Any]:
    for cell in getattr(wrapper, "__closure__", None) or ():
        if callable(cell.cell_contents):
            yield cell.cell_contents
    owner = getattr(wrapper, "__self__", None)
    yield from (value for name, value in getattr(owner, "__dict__", {}).items() if "send" in name and callable(value))
    if "send" in (state := getattr(wrapper, "__dict__", {})):
        yield state["send"]
