"""What the definitions of the tables share: columns, checks and indexes.

Money is BIGINT hundredths, time BIGINT microseconds since the epoch (docs/architecture.md, "Units").
"""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ColumnElement,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.schema import SchemaItem

metadata: Final = MetaData(
    naming_convention={"pk": "pk_%(table_name)s", "fk": "fk_%(table_name)s_%(column_0_name)s"},
)

#: Both drivers take and return it as text.
UUID: Final = Uuid(as_uuid=False).with_variant(String(36), "sqlite")


#: Compared and ordered by its bytes, so that what begins with a text is a range of an index.
BYTES: Final = Text(collation="C").with_variant(Text(), "sqlite")


def table(name: str, *items: SchemaItem, reused_ids: bool = False, is_index: bool = False) -> Table:
    """`reused_ids`: SQLite may give the number of a deleted row to another one. `is_index`: of short rows
    that are found by their primary key, and SQLite keeps them in that index alone."""
    numbered = any(isinstance(item, Column) and item.name == "id" for item in items)
    # AUTOINCREMENT: SQLite never uses a number again, not even that of a last row that was rolled back.
    options: dict[str, Any] = {"sqlite_autoincrement": numbered and not reused_ids, "sqlite_with_rowid": not is_index}
    return Table(name, metadata, *items, **options)


def id_column() -> Column[int]:
    """A number that the database gives (D28). INTEGER on SQLite, where only that is an alias of the rowid."""
    return Column("id", BigInteger().with_variant(Integer(), "sqlite"), Identity(), primary_key=True)


def merchant_column() -> Column[int]:
    return Column("merchant_id", BigInteger, ForeignKey("merchants.id"), nullable=False)


def env_column() -> Column[str]:
    return Column("env", String(4), nullable=False)


def one_of(column: str, values: tuple[str, ...], table: str) -> CheckConstraint:
    """The check that a column of text has one of these values. Written with OR: for IN with three values or more SQLite
    makes a temporary index each time it checks a row (3.5 µs where OR takes none that can be measured)."""
    listed = " OR ".join(f"{column} = '{value}'" for value in values)
    return CheckConstraint(listed, name=f"ck_{table}_{column}")


def partial_index(name: str, *columns: str | ColumnElement[Any], where: str, unique: bool = False) -> Index:
    """An index over the rows that fulfil `where` only.

    The condition is given to the dialect that asks for it. As arguments `postgresql_where` and `sqlite_where` it would
    import both dialects, and a server needs one.
    """
    index = Index(name, *columns, unique=unique)
    options_of = index.dialect_options.creator

    def with_condition(dialect: str) -> Any:
        options = options_of(dialect)
        options["where"] = text(where)
        return options

    index.dialect_options.creator = with_condition
    return index


def queue_indexes(table: str, due: str, partition: str) -> tuple[Index, Index]:
    """The indexes that a `work_queue.WorkQueue` reads: pending rows by due time, and by partition."""
    return (
        partial_index(f"ix_{table}_{due}", due, "id", partition, where="status = 'pending'"),
        partial_index(f"ix_{table}_partition_key", partition, due, "id", where="status = 'pending'"),
    )
