"""Compiles each statement once for one database, so that its text goes straight to the driver."""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import BindParameter, Boolean, ClauseElement, Executable, Integer, String
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.sql.compiler import SQLCompiler


class ConstantsInText(SQLCompiler):
    """Writes a statement's own values, which are constants of ours, into its text: a plan that is made once uses an
    index with a condition only where the text says the same, and knows how few rows a limit leaves."""

    def visit_bindparam(self, bindparam: BindParameter[Any], *args: Any, **options: Any) -> str:
        if bindparam.unique and not bindparam.required and not bindparam.expanding:
            if bindparam.value is None:
                return "NULL"
            if isinstance(bindparam.value, str | int) and isinstance(bindparam.type, String | Integer | Boolean):
                return self.render_literal_value(bindparam.value, bindparam.type)
        text: str = super().visit_bindparam(bindparam, *args, **options)  # type: ignore[no-untyped-call]
        return text


class CompiledStatement:
    """A statement's text for one database, and how to lay out its parameters and rows."""

    __slots__ = ("_defaults", "_has_values", "_pick", "booleans", "names", "text")

    def __init__(self, statement: Executable, dialect: DefaultDialect) -> None:
        assert isinstance(statement, ClauseElement)
        compiled = statement.compile(dialect=dialect)
        assert isinstance(compiled, SQLCompiler)
        self.text: Final = str(compiled)
        self._defaults: Final[dict[str, Any]] = dict(compiled.params)
        #: Whether some parameters have values of the statement's own.
        self._has_values: Final = any(value is not None for value in self._defaults.values())
        #: The parameters in the order of the placeholders.
        self.names: Final = tuple(compiled.positiontup or ())
        self._pick: Final = _values_in_order(self.names)
        columns = compiled._result_columns
        #: Positions of the boolean columns, which SQLite returns as 0 and 1.
        self.booleans: Final = tuple(i for i, column in enumerate(columns) if isinstance(column.type, Boolean))

    def positional(self, params: dict[str, Any]) -> Sequence[Any]:
        """The values in the order of the placeholders. A parameter that is not in `params` has the statement's own
        value."""
        if not self._has_values:
            try:
                return self._pick(params)
            except KeyError:  # One was left out, which is NULL.
                pass
        return self._pick({**self._defaults, **params})


def _values_in_order(names: tuple[str, ...]) -> Callable[[dict[str, Any]], Sequence[Any]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: [values[name] for name in names]


class StatementCache(dict[Executable, CompiledStatement]):
    """Statements of one database, each compiled when it is first used. Statements are kept for ever: they must be
    module constants or come from a cached builder."""

    def __init__(self, dialect: DefaultDialect) -> None:
        super().__init__()
        self._dialect = dialect

    def __missing__(self, statement: Executable) -> CompiledStatement:
        compiled = self[statement] = CompiledStatement(statement, self._dialect)
        return compiled
