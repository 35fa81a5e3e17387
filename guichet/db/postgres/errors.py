"""What asyncpg's errors mean: which are ours (`errors.py`), and after which a statement may be sent again."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import asyncpg

from guichet.db.errors import (
    ConnectionLost,
    ConstraintViolated,
    DiskFull,
    ReadOnlyServer,
    StatementNotSent,
    StorageError,
    StorageUnavailable,
    TransactionAborted,
    ValueRefused,
)

#: No connection was made: the server is away, not ready yet, or accepts no more connections.
NO_CONNECTION: Final = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
#: The connection is gone, and with it everything that was not committed.
_LOST: Final = (
    ConnectionError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
)
#: How the driver's messages begin when it refuses to send because it knows already that the connection is closed.
_REFUSED_TO_SEND: Final = ("connection is closed", "cannot switch to state", "the underlying connection is closed")
_UNAVAILABLE: Final = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ObjectNotInPrerequisiteStateError,
)
#: The server's words for a value that no column or index can hold. The driver has its own: an InterfaceError that is a
#: ValueError, raised before anything is sent.
_REFUSED_VALUES: Final = (asyncpg.DataError, asyncpg.ProgramLimitExceededError)
#: Ours by the driver's class; the first that fits.
_OURS: Final[tuple[tuple[type[Exception] | tuple[type[Exception], ...], type[StorageError]], ...]] = (
    (asyncpg.ReadOnlySQLTransactionError, ReadOnlyServer),
    (asyncpg.DiskFullError, DiskFull),
    (asyncpg.TransactionRollbackError, TransactionAborted),
    (_UNAVAILABLE, StorageUnavailable),
    (asyncpg.PostgresError, StorageError),
)
#: Errors of the driver that end a transaction without a rollback of ours.
BROKEN: Final = (*_LOST, *_UNAVAILABLE, asyncpg.TransactionRollbackError)


#: PostgreSQL has no code of its own for it: how it refuses a new connection when there is no room for a small file.
_NO_ROOM_TO_CONNECT: Final = "could not write init file"


def is_disk_full(error: asyncpg.PostgresError) -> bool:
    return isinstance(error, asyncpg.DiskFullError) or _NO_ROOM_TO_CONNECT in str(error)


@contextmanager
def translated() -> Iterator[None]:
    """Raises the driver's errors as ours; other exceptions pass unchanged."""
    try:
        yield
    except Exception as error:
        storage_error = translate(error)
        if storage_error is None:
            raise
        raise storage_error from error


def translate(error: BaseException) -> StorageError | None:
    """The driver's error as ours; None when it is not one of the driver's."""
    if isinstance(error, asyncpg.IntegrityConstraintViolationError):
        return ConstraintViolated(str(error.constraint_name))
    if _is_refused_value(error):  # Not its text: the driver quotes the value, and logs would show it.
        return ValueRefused(type(error).__name__)
    if isinstance(error, asyncpg.InvalidSQLStatementNameError):  # PgBouncer no longer keeps what it kept.
        return StatementNotSent(str(error))
    if isinstance(error, _LOST):
        lost = StatementNotSent if str(error).startswith(_REFUSED_TO_SEND) else ConnectionLost
        return lost(str(error) or type(error).__name__)
    for kind, storage_class in _OURS:
        if isinstance(error, kind):
            return storage_class(str(error) or type(error).__name__)
    return None


def _is_refused_value(error: BaseException) -> bool:
    if isinstance(error, asyncpg.InterfaceError):
        return isinstance(error, ValueError) and not isinstance(error, asyncpg.ClientConfigurationError)
    return isinstance(error, _REFUSED_VALUES)
