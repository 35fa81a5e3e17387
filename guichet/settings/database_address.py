"""The address of a database as it may be shown to people: without the password."""

import re
from typing import Final
from urllib.parse import parse_qsl, urlencode

_SCHEME: Final = "postgresql://"
#: What of the query says where the database is. The rest may hold a password.
_SHOWN: Final = ("host", "hostaddr", "port", "dbname", "user")


def shown_address(url: str) -> str:
    """`postgresql://user@host/name`, or the path of an SQLite file.

    Nothing between the user's name and the last `@` is shown, so that a password with a `/` or a `?` that was not
    escaped stays hidden too.
    """
    if not url.startswith(_SCHEME):
        return url.removeprefix("sqlite:///")
    credentials, at, place = url.removeprefix(_SCHEME).rpartition("@")
    user = re.split(r"[:@/?]", credentials)[0]
    place, _, query = place.partition("?")
    shown = urlencode([(name, value) for name, value in parse_qsl(query) if name in _SHOWN], safe="/,:")
    return f"{_SCHEME}{user}{at}{place}{'?' if shown else ''}{shown}"
