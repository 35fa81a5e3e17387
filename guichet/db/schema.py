"""The revision of a database's schema, and whether this version of Guichet may run on it.

Every process asks when it starts. That reads one row and does not load Alembic, which takes a tenth of a second
(`migrate.py`).

A migration's revision is `v0040`: only code that knows it may run on that schema. Or it is `v0040_admits_v0039`: code
whose own last revision is v0039 works on it too, so an upgrade to it can be undone. An older version of Guichet does
not know the migration, but reads its name in the database.
"""

import asyncio
import re
from typing import Final, NamedTuple

from guichet import __version__
from guichet.db.errors import DatabaseMissing, DevelopmentSchema, SchemaOutdated, SchemaTooNew, UnknownSchema
from guichet.db.sqlite.database import read_revision as read_sqlite_revision
from guichet.settings import Settings

#: The last revision of `migrations/versions` (a test compares them).
REQUIRED_REVISION: Final = "v0039"
#: The number of the first migration. What has a smaller one was made by a development version, and is not migrated.
FIRST_NUMBER: Final = 39
#: Early development versions wrote `0001`.
_NAME: Final = re.compile(r"v?(\d{4})(?:_admits_v(\d{4}))?")


class Revision(NamedTuple):
    """`number`: its place among the migrations. `oldest`: the last revision of the oldest code that works on it."""

    number: int
    oldest: int


def parse_revision(name: str) -> Revision:
    """Raises UnknownSchema when no version of Guichet names a revision like that."""
    parts = _NAME.fullmatch(name)
    if parts is None:
        raise UnknownSchema(f"{name!r} is not a revision of Guichet")
    return Revision(int(parts[1]), int(parts[2] or parts[1]))


def is_usable(name: str, required: str = REQUIRED_REVISION) -> bool:
    """Whether code that needs `required` works on a schema of this revision. Raises UnknownSchema."""
    revision, own = parse_revision(name), parse_revision(required).number
    return revision.oldest <= own <= revision.number


async def current_revision(settings: Settings) -> str | None:
    """The revision of a schema that this code can use or migrate; None when the database is empty.

    Raises DevelopmentSchema, SchemaTooNew, UnknownSchema, DatabaseUnusable, DatabaseDamaged, and NoPrimary when no
    PostgreSQL server can be used.
    """
    if settings.embedded:
        name = await asyncio.to_thread(read_sqlite_revision, settings.sqlite_path)
    else:
        from guichet.db.postgres.database import read_revision  # noqa: PLC0415 - an embedded database needs none of it

        name = await read_revision(settings)
    if name is None:
        return None
    number = parse_revision(name).number
    if number < FIRST_NUMBER:
        raise DevelopmentSchema(
            f"The database {settings.database_address} was made by a development version of Guichet, before the first "
            "release, and cannot be migrated: name a new file or an empty database in GUICHET_DATABASE_URL, and run "
            "`guichet migrate`."
        )
    if number > parse_revision(REQUIRED_REVISION).number and not is_usable(name):
        raise SchemaTooNew(
            f"This version of Guichet ({__version__}) is older than the database {settings.database_address}: it knows "
            f"the schema up to {REQUIRED_REVISION}, and the schema is {name}, which does not admit it. Start the newer "
            'version again (docs/operations/upgrade.md, "Going back").'
        )
    return name


async def check_schema(settings: Settings) -> str:
    """The revision of a schema that this code can use. Raises DatabaseMissing, SchemaOutdated, and what
    `current_revision` raises."""
    revision = await current_revision(settings)
    if revision is None:
        raise DatabaseMissing(
            f"There is no Guichet database at {settings.database_address}: is the environment loaded? "
            "`guichet migrate` creates it."
        )
    if not is_usable(revision):
        raise SchemaOutdated(
            f"The schema of the database {settings.database_address} is {revision}, and this version of Guichet "
            f"({__version__}) needs {REQUIRED_REVISION}: run `guichet migrate` first."
        )
    return revision
