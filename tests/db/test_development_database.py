"""A database of a development version, made before the first release: every command says so in one sentence."""

import pytest

from guichet.db.errors import DevelopmentSchema
from guichet.db.migrate import upgrade
from guichet.db.schema_version import current_revision
from guichet.settings import Settings
from tests.cli.conftest import cli_for
from tests.db.schema import name_revision

SENTENCE = (
    "This database was made by a development version of Guichet, before the first release, and cannot be migrated: "
    "it must be recreated."
)
COMMANDS = (("migrate",), ("serve",), ("serve", "--workers", "2"), ("worker",), ("merchant", "list"), ("doctor",))


async def test_every_command_says_that_it_must_be_recreated(settings: Settings) -> None:
    await name_revision(settings, "0004")
    cli = cli_for(settings)
    several = () if not settings.embedded else (("serve", "--workers", "2"),)
    for command in COMMANDS:
        if command not in several:  # SQLite is refused there for another reason.
            assert cli(*command).refusal == SENTENCE, command


@pytest.mark.parametrize("revision", ["0001", "0002", "0003", "0004"])
async def test_every_revision_of_a_development_version_is_known(settings: Settings, revision: str) -> None:
    await name_revision(settings, revision)
    for used in (current_revision, upgrade):
        with pytest.raises(DevelopmentSchema, match="must be recreated"):
            await used(settings)
