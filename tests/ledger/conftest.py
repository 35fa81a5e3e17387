"""The command on the same database, and hands that tamper with it."""

import pytest

from guichet.settings import Settings
from tests.cli.conftest import Cli, cli_for
from tests.ledger.ledger_history import Hands


@pytest.fixture
def cli(settings: Settings) -> Cli:
    return cli_for(settings)


@pytest.fixture
def hands(settings: Settings) -> Hands:
    return Hands(settings)
