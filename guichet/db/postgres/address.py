"""What an address of PostgreSQL says: the hosts, and whether only a primary will do. asyncpg reads it."""

from collections.abc import Sequence
from typing import Final

import asyncpg
from asyncpg import connect_utils

from guichet.db.errors import DatabaseUnusable
from guichet.domain.records import Record

_OPTIONS: Final = (
    "host", "port", "user", "password", "passfile", "database", "ssl", "service", "servicefile", "direct_tls",
    "server_settings", "target_session_attrs", "krbsrvname", "gsslib",
)  # fmt: skip


class Host(Record, frozen=True):
    """`address`: a name, an IP address or the path of a socket."""

    address: str
    port: int

    def __str__(self) -> str:
        """For messages. A password with an "@" that was not escaped would be read as part of the name."""
        return self.address if self.address.startswith("/") else f"{self.address.rpartition('@')[2]}:{self.port}"


class Address(Record, frozen=True):
    """`target`: the kind of server that the driver must look for by itself."""

    hosts: Sequence[Host]
    needs_primary: bool
    target: connect_utils.SessionAttribute


def read_address(url: str, *, bouncer: bool) -> Address:
    """Raises DatabaseUnusable. Of several hosts, only a primary will do, whatever the address says."""
    try:
        read = connect_utils._parse_connect_dsn_and_args  # type: ignore[attr-defined] # its types leave it out
        places, parameters = read(dsn=url, **dict.fromkeys(_OPTIONS))
    except (ValueError, LookupError, OSError, asyncpg.InterfaceError) as error:
        raise DatabaseUnusable(_fault_of_address(error)) from None
    hosts = [Host(place, int(place.rpartition(".")[2])) if isinstance(place, str) else Host(*place) for place in places]
    target = parameters.target_session_attrs
    is_primary = target is connect_utils.SessionAttribute.primary
    return Address(
        hosts,
        needs_primary=not bouncer and (is_primary or len(hosts) > 1),
        target=connect_utils.SessionAttribute.any if is_primary and not bouncer else target,
    )


def _fault_of_address(error: Exception) -> str:
    """A part of the address may be a part of the password, which no message shows."""
    if isinstance(error, OSError | asyncpg.InterfaceError) and "URI" not in str(error):
        return str(error)
    return "the address cannot be read; in a password, @ is written %40, / %2F, ? %3F and # %23"
