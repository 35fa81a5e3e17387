"""Timelines: which of two servers that both call themselves primary was promoted last
(docs/decisions.md, "Newest timeline").

Each promotion of a standby begins a new timeline of its cluster. The newest one that was seen is remembered, in the
process and in a file of the data folder, so that an old primary that comes back is refused after a restart too.
"""

from pathlib import Path
from typing import Final

import asyncpg
import msgspec

from guichet.db.errors import OutdatedPrimary
from guichet.db.postgres.connection import UNKNOWN_SERVER, Connection, Server
from guichet.logs import log
from guichet.private_files import replace_private_file

#: Not pg_control_checkpoint(), which goes on naming the old timeline until the first checkpoint after a promotion. The
#: first eight digits of a WAL file's name are its timeline. Every role may call these functions.
_SERVER: Final = """
SELECT (SELECT system_identifier::text FROM pg_control_system()),
    CASE WHEN NOT pg_is_in_recovery() THEN pg_walfile_name(pg_current_wal_lsn()) END"""
#: An administrator took the right away, the server may not read its own files, or it is a server that only speaks
#: PostgreSQL's protocol.
_DOES_NOT_TELL: Final = (
    asyncpg.InsufficientPrivilegeError,
    asyncpg.FeatureNotSupportedError,
    asyncpg.UndefinedFunctionError,
)
#: Every cluster begins with this timeline: it is older than nothing.
_FIRST: Final = 1


async def ask_server(connection: Connection, address: str) -> Server:
    """`address`: the hosts that were asked. A copy that was restored elsewhere has the same identity, and its timeline
    says nothing about the books."""
    try:
        cluster, wal_file = await connection.fetchrow(_SERVER)
    except _DOES_NOT_TELL:
        in_recovery = await connection.fetchval("SELECT pg_is_in_recovery()")
        return Server("", None) if in_recovery else UNKNOWN_SERVER
    return Server(f"{cluster} at {address}", None if wal_file is None else int(wal_file[:8], 16))


class Timelines:
    """The newest timeline of each cluster that was seen. `file`: None remembers within the process only."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._newest: dict[str, int] = {}
        #: What was logged of each host last: each change is logged once.
        self._refused: dict[str, Server] = {}
        self._file_fault: str | None = None

    def check(self, host: str, server: Server) -> None:
        """Remembers a primary's timeline. Raises OutdatedPrimary if a newer one of its cluster was seen, and for a
        server that does not tell when there was ever a promotion."""
        if server.timeline is None:
            return
        self._read()
        if server == UNKNOWN_SERVER and self._newest:
            raise OutdatedPrimary(
                "a primary that does not tell its timeline, after a promotion was seen: does the role have EXECUTE on "
                f"pg_control_system() ({self._file or 'in this process'})?"
            )
        if server == UNKNOWN_SERVER:
            return
        newest = self._newest.get(server.cluster, _FIRST)
        if server.timeline < newest:
            self._refuse(host, server, newest)
        self._refused.pop(host, None)
        if server.timeline > newest:
            log.info("database.newer_timeline", host=host, timeline=server.timeline, before=newest)
            self._newest[server.cluster] = server.timeline
            self._write()

    def is_outdated(self, server: Server) -> bool:
        return bool(server.timeline) and (server.timeline or 0) < self._newest.get(server.cluster, _FIRST)

    def _refuse(self, host: str, server: Server, newest: int) -> None:
        if self._refused.get(host) != server:
            self._refused[host] = server
            log.error("database.outdated_primary", host=host, timeline=server.timeline, newest=newest)
        remedy = f"stop Guichet and delete {self._file}" if self._file else "restart Guichet"
        raise OutdatedPrimary(
            f"a primary on timeline {server.timeline}, but timeline {newest} of the same database was seen: it is out "
            f"of date and must be stopped (if it alone is right, as after restoring a backup, {remedy})"
        )

    def _read(self) -> None:
        """Other processes of this machine write the file too."""
        if self._file is None:
            return
        try:
            stored = msgspec.json.decode(self._file.read_bytes(), type=dict[str, int])
        except FileNotFoundError:
            return
        except (OSError, msgspec.MsgspecError) as error:
            self._report(f"cannot be read: {error}")
            return
        for cluster, timeline in stored.items():
            self._newest[cluster] = max(timeline, self._newest.get(cluster, _FIRST))

    def _write(self) -> None:
        if self._file is None:
            return
        try:
            replace_private_file(self._file, msgspec.json.encode(self._newest))
        except OSError as error:
            self._report(f"cannot be written: {error}")

    def _report(self, fault: str) -> None:
        """Guichet goes on: the process remembers by itself."""
        if fault != self._file_fault:
            self._file_fault = fault
            log.warning("database.timelines_file", file=str(self._file), fault=fault)
