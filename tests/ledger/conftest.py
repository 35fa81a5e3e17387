"""The command on the same database, and raw SQL to tamper with it."""

import pytest

from guichet.settings import Settings
from tests.cli.conftest import Cli, cli_for
from tests.ledger.ledger_history import RawSql


@pytest.fixture
def cli(settings: Settings) -> Cli:
    return cli_for(settings)


@pytest.fixture
def raw_sql(settings: Settings) -> RawSql:
    return RawSql(settings)
