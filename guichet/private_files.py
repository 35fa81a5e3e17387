"""Files and folders that nobody but their owner may read, whatever the umask: databases, keys, state."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600
#: For the whole process: what it creates is private, exports and what libraries create included.
UMASK: Final = 0o077
#: What SQLite puts beside a database.
_BESIDE: Final = ("", "-wal", "-shm", "-journal")


def make_private_folder(path: Path) -> None:
    """Creates the folder and those above it that are missing. One that exists is left as it is."""
    for folder in reversed([path, *path.parents]):
        if not folder.exists():
            folder.mkdir(FOLDER_MODE, exist_ok=True)


def make_private_file(path: Path) -> None:
    """Creates an empty file. One that exists is left as it is. SQLite gives its files beside it the same mode."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE))


def replace_private_file(path: Path, content: bytes) -> None:
    """Writes the whole file at once: whoever reads it finds the old content or the new, also after a loss of power."""
    make_private_folder(path.parent)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    with open(new, "wb", opener=_private) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)


def sqlite_files(path: Path) -> list[Path]:
    """The files of a SQLite database that exist."""
    return [file for suffix in _BESIDE if (file := path.with_name(path.name + suffix)).exists()]


def too_wide(paths: Iterable[Path]) -> list[tuple[Path, int]]:
    """(path, mode) of those that others than the owner may read or write."""
    modes = [(path, stat.S_IMODE(path.stat().st_mode)) for path in paths if path.exists()]
    return [(path, mode) for path, mode in modes if mode & UMASK]


def tighten(paths: Iterable[Path]) -> list[tuple[Path, int]]:
    """Takes the rights of others away. Returns (path, mode before) of those that were changed.

    A folder that all may write in (`/tmp`), or what belongs to another user, is left as it is; `guichet doctor` says
    so.
    """
    changed = []
    for path, mode in too_wide(paths):
        if not mode & stat.S_ISVTX and path.stat().st_uid == os.geteuid():
            path.chmod(FOLDER_MODE if path.is_dir() else FILE_MODE)
            changed.append((path, mode))
    return changed
