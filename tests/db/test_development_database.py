"""A database of a development version, made before the first release: every command says so in one sentence."""

import pytest

from guichet.db.errors import DevelopmentSchema
from guichet.db.migrate import upgrade
from guichet.db.schema import current_revision
from guichet.settings import Settings
from tests.cli.conftest import cli_for
from tests.db.schema import name_revision

#: On PostgreSQL those that open the database in a way of their own: the others look at the revision before that, alike.
ON_SQLITE = (("migrate",), ("serve",), ("worker",), ("merchant", "list"), ("doctor",))
ON_POSTGRESQL = (("migrate",), ("serve", "--workers", "2"), ("merchant", "list"))


async def test_every_command_says_that_it_must_be_recreated(settings: Settings) -> None:
    await name_revision(settings, "v0032_admits_v0016")
    cli = cli_for(settings)
    for command in ON_SQLITE if settings.embedded else ON_POSTGRESQL:
        assert cli(*command).refusal == (
            f"The database {settings.database_address} was made by a development version of Guichet, before the "
            "first release, and cannot be migrated: name a new file or an empty database in GUICHET_DATABASE_URL, "
            "and run `guichet migrate`."
        ), command


@pytest.mark.parametrize("revision", ["0001", "0004", "v0001", "v0016_admits_v0015"])
async def test_every_revision_of_a_development_version_is_known(settings: Settings, revision: str) -> None:
    await name_revision(settings, revision)
    for used in (current_revision, upgrade):
        with pytest.raises(DevelopmentSchema, match="cannot be migrated"):
            await used(settings)
