"""An HTTP/1.1 client that sends any bytes, and reads what comes back without trusting it."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from guichet.server.connection_limits import MAX_BODY

#: Seconds within which a whole request must be answered.
PATIENCE: Final = 40.0
#: Seconds of silence after which bytes that may be no whole request count as not answered.
SILENCE: Final = 0.06
_MAX_HEAD: Final = 64 * 1024
_MAX_BODY: Final = 16 * 1024 * 1024
_BODILESS: Final = (204, 304)


class BrokenAnswer(Exception):
    """What came back is no HTTP answer, or none came where one had to."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer; names of headers are in lower case, and a header that came twice is there twice."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for known, value in self.headers if known == name), None)

    @property
    def closes(self) -> bool:
        return (self.header("connection") or "").lower() == "close"


class Connection:
    """One connection at a time to one port of this machine, opened again when it is needed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, raw: bytes, method: str) -> Answer:
        """The one answer to a whole request. Raises BrokenAnswer."""
        reader = await self._send(raw)
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await _read_answer(reader, method)
        except TimeoutError:
            raise BrokenAnswer(f"no answer to a whole request within {PATIENCE:.0f} s") from None
        if answer is None:
            raise BrokenAnswer("a whole request was not answered: the connection was closed")
        # Who is answered before its whole body was read, and goes on sending, is cut off at the size of a body.
        if answer.closes or len(raw) > MAX_BODY:
            await self.close()
        return answer

    async def provoke(self, raw: bytes) -> list[Answer]:
        """All answers to bytes that may be no request, or several. Raises BrokenAnswer. The connection is new, and is
        closed afterwards."""
        await self.close()
        reader = await self._send(raw)
        answers = []
        with suppress(TimeoutError):
            while True:
                async with asyncio.timeout(SILENCE):
                    first = await reader.read(1)
                if not first:
                    break
                async with asyncio.timeout(PATIENCE):
                    answer = await _read_answer(reader, "", first)
                assert answer is not None
                answers.append(answer)
        await self.close()
        return answers

    async def close(self) -> None:
        writer, self._reader, self._writer = self._writer, None, None
        if writer is not None:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()

    async def _send(self, raw: bytes) -> asyncio.StreamReader:
        if self._reader is None or self._writer is None or self._reader.at_eof():
            await self.close()
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=_MAX_BODY)
        self._writer.write(raw)
        return self._reader


async def _read_answer(reader: asyncio.StreamReader, method: str, first: bytes = b"") -> Answer | None:
    """`method`: of the request, since the answer to HEAD has no body; empty when nobody knows. None: closed before the
    first byte. Informational answers are skipped."""
    try:
        head = first + await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if not first and not error.partial:
            return None
        raise BrokenAnswer(f"half a head: {(first + error.partial)[:200]!r}") from None
    except (asyncio.LimitOverrunError, OSError) as error:
        if isinstance(error, OSError) and not first:
            return None
        raise BrokenAnswer(f"no readable head: {error!r}") from None
    status, headers = _parse_head(head)
    if 100 <= status < 200:
        return await _read_answer(reader, method)
    names = dict(headers)
    if method == "HEAD" or status in _BODILESS:
        return Answer(status, headers, b"")
    try:
        body = await _read_body(reader, names, whole=method != "")
    except asyncio.IncompleteReadError as error:
        raise BrokenAnswer(f"half a body: {status}, {len(error.partial)} bytes of it") from None
    except OSError as error:
        raise BrokenAnswer(f"the body broke off: {status}, {error!r}") from None
    return Answer(status, headers, body)


async def _read_body(reader: asyncio.StreamReader, names: dict[str, str], *, whole: bool) -> bytes:
    """`whole`: False where the request may have been a HEAD, whose answer announces a body that never comes."""
    if names.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readuntil(b"\r\n")
        return body
    length = int(names.get("content-length", "0"))
    if length > _MAX_BODY:
        raise BrokenAnswer(f"a body of {length} bytes")
    if whole:
        return await reader.readexactly(length)
    try:
        async with asyncio.timeout(5 * SILENCE):
            return await reader.readexactly(length)
    except TimeoutError:
        return b""


def _parse_head(head: bytes) -> tuple[int, list[tuple[str, str]]]:
    line, *rest = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    version, _, after = line.partition(" ")
    if version != "HTTP/1.1" or not after[:3].isdigit():
        raise BrokenAnswer(f"no status line: {line[:200]!r}")
    headers = []
    for text in rest:
        name, colon, value = text.partition(":")
        if not colon or not name or name != name.strip():
            raise BrokenAnswer(f"no header: {text[:200]!r}")
        headers.append((name.lower(), value.strip()))
    if len(head) > _MAX_HEAD:
        raise BrokenAnswer(f"a head of {len(head)} bytes")
    return int(after[:3]), headers
