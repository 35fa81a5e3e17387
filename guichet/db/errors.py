"""What a database can refuse or fail to do.

StorageError
├── ConstraintViolated          a named constraint refused a row
├── ValueRefused                a value that no column can hold: a NUL, an integer of more than 64 bits
├── StorageUnavailable          unreachable, or busy for too long
│   ├── ConnectionLost          the connection broke while a statement ran
│   │   └── StatementNotSent    it had broken before: the statement never left
│   ├── NoPrimary               no host of the address answers as a primary
│   │   ├── OutdatedPrimary     one does, and its timeline is older than one that was seen
│   │   └── PrimaryDiskFull     one accepts no connection because its disk is full; also a DiskFull
│   ├── TransactionAborted      it and another waited for each other: nothing of it was kept
│   ├── ReadOnlyServer          the primary became a standby, or the file may not be written
│   ├── DiskFull                no room for the write
│   └── DatabaseDamaged         the embedded database's file is corrupt
├── DatabaseUnusable            it answered the question for its schema with an error
├── UnusableSchema              this code must not run on its schema; the message is a sentence for the staff
│   ├── DatabaseMissing         it has no tables, or there is no file
│   ├── SchemaOutdated          it must be migrated first
│   ├── SchemaTooNew            a newer version of Guichet migrated it, and older code would not work on it
│   └── DevelopmentSchema       it is older than the first release
└── UnknownSchema               its schema is of no revision of Guichet, or elsewhere
"""


class StorageError(Exception):
    """The database did not do what it was told; nothing of the transaction was kept."""


class ConstraintViolated(StorageError):
    """A named constraint refused a row; `name` is the constraint's."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


class ValueRefused(StorageError):
    """A value that no column can hold; the statement was refused because of it and changed nothing."""


class StorageUnavailable(StorageError):
    """The database cannot be reached or stayed busy for too long.

    If the answer to a write or a commit was lost, the write may have happened all the same. Whoever repeats it must
    rely on a constraint or a condition, as every statement of Guichet does.
    """


class ConnectionLost(StorageUnavailable):
    """The connection broke while a statement ran; whether a write happened is unknown."""


class StatementNotSent(ConnectionLost):
    """The connection had broken before: the statement never left, and any statement may be sent again."""


class NoPrimary(StorageUnavailable):
    """No host of a PostgreSQL address answers as a primary; the message says of each host what happened."""


class OutdatedPrimary(NoPrimary):
    """A host calls itself primary, but a newer timeline of its database was seen: it came back after a failover, or was
    never stopped. Nothing is read from it or written to it."""


class TransactionAborted(StorageUnavailable):
    """Two transactions waited for each other, and the server ended this one: nothing of it was kept."""


class ReadOnlyServer(StorageUnavailable):
    """The primary became a standby under an open connection: only a new connection finds the new primary."""


class DiskFull(StorageUnavailable):
    """No room for the write. Nothing is lost, and writes work again as soon as there is room."""


class PrimaryDiskFull(NoPrimary, DiskFull):
    """A server accepts no connection because it has no room for the files that a new one needs."""


class DatabaseDamaged(StorageUnavailable):
    """The file of the embedded database is corrupt: only a backup helps. The message names the file."""

    def __init__(self, path: str, fault: str) -> None:
        super().__init__(
            f"the database file {path} is damaged ({fault}): stop Guichet, keep the file and restore a backup "
            "(docs/operations/runbook.md)"
        )


class DatabaseUnusable(StorageError):
    """The database answered with an error when it was asked for its schema's revision."""


class UnknownSchema(StorageError):
    """No version of Guichet names a revision like that of the schema, or the tables are in another schema."""


class UnusableSchema(StorageError):
    """This code must not run on the schema. The message is one sentence for the staff, which says what to do."""


class DatabaseMissing(UnusableSchema):
    """The database has no tables of Guichet, or its file does not exist."""


class SchemaOutdated(UnusableSchema):
    """The schema is older than this code needs."""


class SchemaTooNew(UnusableSchema):
    """A newer version of Guichet migrated the schema, and this code would not work on it."""


class DevelopmentSchema(UnusableSchema):
    """The schema was made before the first release; no migration leads from it to today's."""
