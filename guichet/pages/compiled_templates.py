"""Compiled templates in files, as Python keeps its modules: compiling takes most of the time of the first page after a
start.

They stand in the `__pycache__` of their package, and are written where Python may write its own; without them each
process compiles its templates.
"""

import hashlib
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from jinja2.bccache import Bucket, BytecodeCache


def fingerprint(folders: Iterable[Path], code: Iterable[str]) -> bytes:
    """Of all that a compiled template follows from, but for its texts: all templates, since one may be written into
    another, and `code`, the files that compile them."""
    files = [*(file for folder in folders for file in sorted(folder.rglob("*.html"))), *map(Path, code)]
    return hashlib.sha256(version("jinja2").encode() + b"".join(file.read_bytes() for file in files)).digest()


class CompiledTemplates(BytecodeCache):
    """Those of one language, whose `texts` are written into them."""

    def __init__(self, folder: Path, language: str, texts: Mapping[str, str], compiled_from: bytes) -> None:
        self._folder = folder / "__pycache__"
        self._language = language
        self._salt = hashlib.sha256(compiled_from + repr(sorted(texts.items())).encode()).hexdigest()

    def get_source_checksum(self, source: str) -> str:
        return super().get_source_checksum(self._salt + source)

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError), self._file(bucket).open("rb") as file:
            bucket.load_bytecode(file)

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        file = self._file(bucket)
        part = file.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            part.write_bytes(bucket.bytecode_to_string())
            part.replace(file)

    def _file(self, bucket: Bucket) -> Path:
        return self._folder / f"{self._language}-{bucket.key}.template"
