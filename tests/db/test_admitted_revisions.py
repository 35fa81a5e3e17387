"""What the name of a revision promises to older code is true."""

import re
import shutil
import sqlite3
from contextlib import closing
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Final

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import Inspector, create_engine, inspect
from sqlalchemy.pool import NullPool

from guichet.db.errors import UnknownSchema
from guichet.db.migrate import alembic_config
from guichet.db.schema import FIRST_NUMBER, REQUIRED_REVISION, is_usable, parse_revision
from tests.db.schema import NEXT_REVISION, next_release

DATABASE: Final = "guichet.db"
#: Those that there are, and that of a next release.
SCRIPTS = ScriptDirectory.from_config(alembic_config())
NAMES = [*[script.revision for script in SCRIPTS.walk_revisions()][::-1], NEXT_REVISION]
#: (code, schema): code whose last revision is the first one may run on the second.
DECLARED = [
    (code, name)
    for name in NAMES
    for code in NAMES
    if parse_revision(name).oldest <= parse_revision(code).number < parse_revision(name).number
]


@pytest.mark.parametrize(
    ("schema", "usable"),
    [
        ("v0015", True),
        ("v0014", False),
        ("v0014_admits_v0013", False),
        ("v0016", False),
        ("v0016_admits_v0015", True),
        ("v0017_admits_v0014", True),
        ("v0017_admits_v0016", False),
    ],
)
def test_code_runs_on_the_schemas_that_admit_it(schema: str, usable: bool) -> None:
    assert is_usable(schema, "v0015") is usable
    assert is_usable(schema, "v0015_admits_v0014") is usable


@pytest.mark.parametrize("name", ["", "v00015", "v15", "v0016_admits_", "v0016-admits-v0015", "ab12cd34ef56"])
def test_other_names_are_no_revision_of_ours(name: str) -> None:
    with pytest.raises(UnknownSchema):
        parse_revision(name)


def test_revisions_are_numbered_and_never_admit_older_code_again() -> None:
    revisions = [parse_revision(name) for name in NAMES]
    assert [each.number for each in revisions] == list(range(FIRST_NUMBER, FIRST_NUMBER + len(NAMES)))
    assert all(each.oldest <= each.number for each in revisions)
    assert all(before.oldest <= after.oldest or after.oldest == after.number for before, after in pairwise(revisions))
    assert all(len(name) <= 32 for name in NAMES), "the column of Alembic holds no more"


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, Any]]]:
    """A database of the schema that this version needs, made once and copied for each fault; and what is in it."""
    path = _migrate(tmp_path_factory.mktemp("schema"), REQUIRED_REVISION)
    return path, _described(path)


def test_what_older_code_knows_is_still_there(tmp_path: Path) -> None:
    schemas = {name: _described(_migrate(tmp_path, name)) for name in NAMES if name in chain.from_iterable(DECLARED)}
    faults = {(code, name): _broken(schemas[code], schemas[name]) for code, name in DECLARED}
    assert faults
    assert {pair: found for pair, found in faults.items() if found} == {}


@pytest.mark.parametrize(
    ("table", "statement", "fault"),
    [
        ("write_probe", "DROP TABLE write_probe", "write_probe is gone"),
        ("merchants", "ALTER TABLE merchants RENAME COLUMN name TO label", "merchants.name is gone or another one"),
        ("merchants", "CREATE UNIQUE INDEX one_name ON merchants (name)", "merchants has the rule ['name']"),
        (
            "merchants",
            "ALTER TABLE merchants ADD COLUMN kind TEXT CHECK (kind IN ('a'))",
            "merchants has the rule kind IN ('a')",
        ),
    ],
)
def test_a_promise_that_is_not_kept_is_found(
    migrated: tuple[Path, dict[str, dict[str, Any]]], tmp_path: Path, table: str, statement: str, fault: str
) -> None:
    """The other tables are not described again: that takes half a second."""
    path, before = migrated
    after = Path(shutil.copy(path, tmp_path))
    with closing(sqlite3.connect(after)) as connection:
        connection.execute(statement)
    assert fault in _broken({table: before[table]}, _described(after, only=table))


def _migrate(folder: Path, revision: str) -> Path:
    """The database in this folder, which goes on to this revision."""
    path = folder / DATABASE
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    try:
        with engine.begin() as connection:
            config = next_release(folder)
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
    finally:
        engine.dispose()
    return path


def _described(path: Path, only: str | None = None) -> dict[str, dict[str, Any]]:
    """Each table's columns and rules."""
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    try:
        inspector = inspect(engine)
        names = [name for name in inspector.get_table_names() if only in (None, name)]
        return {name: _table(inspector, name) for name in names}
    finally:
        engine.dispose()


def _table(inspector: Inspector, name: str) -> dict[str, Any]:
    indexes = [each for each in inspector.get_indexes(name) if each["unique"]]
    unique: list[Any] = [each["column_names"] for each in indexes]
    unique += [each["column_names"] for each in inspector.get_unique_constraints(name)]
    partial = {tuple(each["column_names"]): str(each["dialect_options"].get("sqlite_where", "")) for each in indexes}
    return {
        "columns": {column["name"]: column for column in inspector.get_columns(name)},
        "checks": {str(each["sqltext"]) for each in inspector.get_check_constraints(name)},
        "unique": {tuple(map(str, columns)) for columns in unique},
        "where": partial,
    }


def _broken(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> list[str]:
    """What keeps code of `before` from reading and writing as it does."""
    found = []
    for name, known in before.items():
        if name not in after:
            found.append(f"{name} is gone")
            continue
        columns = after[name]["columns"]
        for column, was in known["columns"].items():
            now = columns.get(column)
            if now is None or str(now["type"]) != str(was["type"]) or now["nullable"] < was["nullable"]:
                found.append(f"{name}.{column} is gone or another one")
        found += [
            f"{name}.{column} must be written"
            for column, now in columns.items()
            if column not in known["columns"] and not now["nullable"] and now["default"] is None
        ]
        found += [
            f"{name} has the rule {rule}"
            for rule in after[name]["checks"] - known["checks"]
            if not any(_is_wider(rule, was) for was in known["checks"])
        ]
        found += [
            f"{name} has the rule {list(unique)}"
            for unique in after[name]["unique"] - known["unique"]
            # What is null is unique, and older code leaves the columns null that it does not know.
            if not any(
                column in columns and column not in known["columns"] and columns[column]["default"] is None
                for column in unique
            )
            # Nor is an index a rule for older code over rows with a flag that it never sets.
            and not any(
                str(after[name]["where"].get(unique, "")).endswith(f"AND {column}")
                for column in columns.keys() - known["columns"].keys()
            )
        ]
    return found


def _is_wider(rule: str, was: str) -> bool:
    """Whether a rule lets the same column be what it could be before, and more."""
    now, before = (re.fullmatch(r"(\w+) IN \((.*)\)", text) for text in (rule, was))
    if now is None or before is None or now[1] != before[1]:
        return False
    return set(before[2].split(", ")) <= set(now[2].split(", "))
