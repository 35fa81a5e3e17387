"""Reads a posted form with one file (`multipart/form-data`, RFC 7578), within limits.

Fields stand before the file in our forms, so the form's token is checked before the first byte of the file is kept.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.requests import Request

from guichet.domain.errors import InvalidRequest

_MAX_PARTS: Final = 40
#: Bytes of the names and values of all fields together, and of the headers of one part.
_MAX_TEXT: Final = 16 * 1024
_MAX_HEADERS: Final = 4 * 1024
#: Bytes that boundaries and headers may add to the fields and the file.
OVERHEAD: Final = 64 * 1024


class UploadTooLarge(InvalidRequest):
    """The file has more bytes than the page takes."""


@dataclass(slots=True)
class Upload:
    """A posted form: its fields, the first of each name, and its file. `name`: as the browser sent it, None when no
    file was chosen."""

    fields: dict[str, str] = field(default_factory=dict)
    name: str | None = None
    content: bytearray = field(default_factory=bytearray)


async def read_upload(request: Request, most: int, check: Callable[[dict[str, str]], None]) -> Upload:
    """The form and its file of at most `most` bytes. `check` is called with the fields before any of the file is kept,
    or at the end of a form without a file; what it raises goes to the caller.

    Raises UploadTooLarge, and InvalidRequest for anything that cannot be one of our forms.
    """
    content_length = request.headers.get("content-length", "")
    if content_length.isascii() and content_length.isdigit() and int(content_length[:18]) > most + OVERHEAD:
        raise UploadTooLarge
    reader = _Reader(request.headers.get("content-type", ""), most, check)
    received = 0
    async for chunk in request.stream():
        received += len(chunk)
        if received > most + OVERHEAD:
            raise UploadTooLarge
        reader.feed(chunk)
    return reader.finished()


class _Reader:
    """The callbacks of the parser. What they raise passes through it."""

    def __init__(self, content_type: str, most: int, check: Callable[[dict[str, str]], None]) -> None:
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary", b"")
        if kind != b"multipart/form-data" or not boundary:
            raise InvalidRequest
        self._most = most
        self._check = check
        self._upload = Upload()
        self._text = 0
        self._parts = 0
        self._header: tuple[bytes, bytes] = (b"", b"")
        self._disposition = b""
        self._field: str | None = None
        self._value = b""
        self._checked = False
        self._is_file = False
        self._ended = False
        callbacks = {
            "on_part_begin": self._part_begins,
            "on_header_field": self._header_name,
            "on_header_value": self._header_value,
            "on_header_end": self._header_ends,
            "on_headers_finished": self._headers_end,
            "on_part_data": self._data,
            "on_part_end": self._part_ends,
            "on_end": self._form_ends,
        }
        try:
            self._parser = MultipartParser(boundary, callbacks, max_header_size=_MAX_HEADERS)  # type: ignore[arg-type]
        except FormParserError:
            raise InvalidRequest from None

    def feed(self, chunk: bytes) -> None:
        try:
            self._parser.write(chunk)
        except FormParserError:
            raise InvalidRequest from None

    def finished(self) -> Upload:
        if not self._ended:
            raise InvalidRequest
        if not self._checked:
            self._check(self._upload.fields)
        return self._upload

    def _part_begins(self) -> None:
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise InvalidRequest
        self._header, self._disposition = (b"", b""), b""
        self._field, self._value, self._is_file = None, b"", False

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._header = (self._header[0] + data[start:end], self._header[1])

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._header = (self._header[0], self._header[1] + data[start:end])

    def _header_ends(self) -> None:
        name, value = self._header
        if name.lower() == b"content-disposition":
            self._disposition = value
        self._header = (b"", b"")

    def _headers_end(self) -> None:
        kind, options = parse_options_header(self._disposition)
        name = options.get(b"name")
        if kind != b"form-data" or name is None:
            raise InvalidRequest
        self._field = name.decode("utf-8", "replace")
        self._count(len(name))
        file_name = options.get(b"filename")
        if file_name is not None:
            self._file_begins(file_name)

    def _file_begins(self, file_name: bytes) -> None:
        if self._checked:  # A second file.
            raise InvalidRequest
        self._check(self._upload.fields)
        self._checked = self._is_file = True
        self._upload.name = file_name.decode("utf-8", "replace") or None

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._is_file:
            if len(self._upload.content) + end - start > self._most:
                raise UploadTooLarge
            self._upload.content += data[start:end]
            return
        self._count(end - start)
        self._value += data[start:end]

    def _part_ends(self) -> None:
        if not self._is_file and self._field is not None:
            self._upload.fields.setdefault(self._field, self._value.decode("utf-8", "replace"))

    def _form_ends(self) -> None:
        self._ended = True

    def _count(self, size: int) -> None:
        self._text += size
        if self._text > _MAX_TEXT:
            raise InvalidRequest
