"""One service at a time uses an embedded database, and knows whether processes of an earlier one live."""

import pytest

from guichet.db.sqlite.lock import join_service, lock_database
from guichet.settings import Settings, SettingsError


def test_a_second_service_is_refused(sqlite_settings: Settings) -> None:
    with lock_database(sqlite_settings) as is_alone, pytest.raises(SettingsError), lock_database(sqlite_settings):
        pass
    assert is_alone


def test_processes_that_outlive_their_parent_are_known(sqlite_settings: Settings) -> None:
    """What they had leased is theirs, although nobody holds the lock of the service."""
    with join_service(sqlite_settings), join_service(sqlite_settings), lock_database(sqlite_settings) as is_alone:
        assert not is_alone
    with lock_database(sqlite_settings) as is_alone, join_service(sqlite_settings):
        assert is_alone
