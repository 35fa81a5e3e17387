"""INSERT … ON CONFLICT, one construct for both databases.

It is that of SQLAlchemy's SQLite dialect: PostgreSQL's would import the dialect of PostgreSQL with its drivers, two
megabytes, in a server on SQLite. Both say the same, but for a conflict with a constraint of a given name, which only
PostgreSQL knows.
"""

from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.dialects.sqlite.dml import OnConflictClause

#: PostgreSQL's compiler asks for the name of that constraint.
OnConflictClause.constraint_target = None  # type: ignore[attr-defined]

__all__ = ["upsert"]
