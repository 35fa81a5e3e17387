"""Whether this version of Guichet may run on the schema that it finds (D114).

A migration's revision is `v0016`: only code that knows it may run on that schema. Or it is `v0016_admits_v0015`: code
whose own last revision is v0015 works on it too, so an upgrade to it can be undone. An older version of Guichet does
not know the migration, but reads its name in the database.
"""

import re
from typing import Final, NamedTuple

from guichet import __version__
from guichet.db.errors import DatabaseMissing, SchemaOutdated, SchemaTooNew, UnknownSchema
from guichet.db.schema_version import REQUIRED_REVISION, current_revision
from guichet.settings import Settings

_NAME: Final = re.compile(r"v(\d{4})(?:_admits_v(\d{4}))?")


class Revision(NamedTuple):
    """`number`: its place among the migrations. `oldest`: the last revision of the oldest code that works on it."""

    number: int
    oldest: int


def parse_revision(name: str) -> Revision:
    """Raises UnknownSchema when no version of Guichet names a revision like that."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise UnknownSchema(f"{name!r} is not a revision of Guichet")
    return Revision(int(found[1]), int(found[2] or found[1]))


def is_usable(name: str, required: str = REQUIRED_REVISION) -> bool:
    """Whether code that needs `required` works on a schema of this revision. Raises UnknownSchema."""
    revision, own = parse_revision(name), parse_revision(required).number
    return revision.oldest <= own <= revision.number


def refuse_newer(name: str, settings: Settings) -> None:
    """Raises SchemaTooNew when the schema is newer than this code and does not admit it; UnknownSchema."""
    if not is_usable(name) and parse_revision(name).number > parse_revision(REQUIRED_REVISION).number:
        raise SchemaTooNew(
            f"This version of Guichet ({__version__}) is older than the database {settings.database_address}: it knows "
            f"the schema up to {REQUIRED_REVISION}, and the schema is {name}, which does not admit it. Start the newer "
            'version again (docs/operations/upgrade.md, "Going back").'
        )


async def check_schema(settings: Settings) -> str:
    """The revision of a schema that this code can use. Raises DatabaseMissing, SchemaOutdated, SchemaTooNew, and what
    `current_revision` raises."""
    found = await current_revision(settings)
    if found is None:
        raise DatabaseMissing(
            f"There is no Guichet database at {settings.database_address}: is the environment loaded? "
            "`guichet migrate` creates it."
        )
    refuse_newer(found, settings)
    if not is_usable(found):
        raise SchemaOutdated(
            f"The schema of the database {settings.database_address} is {found}, and this version of Guichet "
            f"({__version__}) needs {REQUIRED_REVISION}: run `guichet migrate` first."
        )
    return found
