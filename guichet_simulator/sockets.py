"""Answers that go wrong on the wire: a connection dropped without a byte, and one closed in the middle of a body.

An ASGI application has no word for "hang up". The server's transport is behind the `send` it was given, which
middlewares wrap in closures: it is looked for there. Under a server that hides it, the answer is begun and never
finished, which every ASGI server turns into a closed connection too.
"""

from collections.abc import Iterator
from typing import Any, Final, Protocol, runtime_checkable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

#: Wrappers are a handful deep in practice; the limit only guards against a cycle.
_DEEPEST: Final = 40


@runtime_checkable
class _Transport(Protocol):
    """What asyncio's and uvloop's transports share; they have no common ancestor."""

    def abort(self) -> None: ...

    def close(self) -> None: ...


class Dropped(Response):
    """The request was read; no byte of an answer is ever sent."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        transport = _transport(send)
        if transport is None:
            await _begin(send, 200, [(b"content-length", b"1000")])
            return
        transport.abort()
        await _gone(receive)


class Halved(Response):
    """Status line, headers and half of the body of `whole`, then the end of the connection."""

    def __init__(self, whole: Response) -> None:
        super().__init__(status_code=whole.status_code)
        self._whole = whole

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = bytes(self._whole.body) or b" " * 64
        headers = [(name, value) for name, value in self._whole.raw_headers if name != b"content-length"]
        await _begin(send, self._whole.status_code, [*headers, (b"content-length", str(len(body)).encode())])
        await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
        transport = _transport(send)
        if transport is not None:
            transport.close()
            await _gone(receive)


async def _begin(send: Send, status: int, headers: list[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _gone(receive: Receive) -> None:
    """Until the server has noticed that the connection is closed: it then expects no answer any more."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _transport(send: Send) -> _Transport | None:
    seen: list[object] = [send]
    for candidate in seen:
        found = getattr(getattr(candidate, "__self__", None), "transport", None)
        if isinstance(found, _Transport):
            return found
        seen.extend(inner for inner in _inside(candidate) if not any(inner is known for known in seen))
        if len(seen) > _DEEPEST:
            break
    return None


def _inside(wrapper: object) -> Iterator[Any]:
    for cell in getattr(wrapper, "__closure__", None) or ():
        if callable(cell.cell_contents):
            yield cell.cell_contents
    owner = getattr(wrapper, "__self__", None)
    yield from (value for name, value in getattr(owner, "__dict__", {}).items() if "send" in name and callable(value))
    if "send" in (state := getattr(wrapper, "__dict__", {})):
        yield state["send"]
