"""What pages read from addresses and forms: ids of rows, choices, texts, and the models that hold them.

An address never refuses: what is none of our values counts as left out. A form names rows of its own page, so an id
that is none belongs to no page at all.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainValidator, ValidationError, WrapValidator
from pydantic_core.core_schema import ValidatorFunctionWrapHandler
from starlette.convertors import Convertor, register_url_convertor

from guichet.domain.errors import NotFound

Value = TypeVar("Value")
Word = TypeVar("Word", bound=str)

#: Ids are 64-bit integers in both databases. A number with more digits is none; one with thousands would not even be an
#: int (`sys.set_int_max_str_digits`).
_DIGITS: Final = 18


class _RowIds(Convertor[int]):
    """`/payments/{payment:row}`: an address with another text does not exist."""

    regex = f"[0-9]{{1,{_DIGITS}}}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


def register_row_ids() -> None:
    """Before the first route is made: Starlette looks the names up there."""
    register_url_convertor("row", _RowIds())


def row_id(text: str | None) -> int | None:
    """The id of a row; None for any other text. A longer number is not cut: it would name another row."""
    is_id = text and text.isascii() and text.isdigit() and len(text) <= _DIGITS
    return int(text) if text and is_id else None


def choice(text: str | None, values: Iterable[Word]) -> Word | None:
    """The one of `values` that was chosen."""
    return next((value for value in values if value == text), None)


def or_not_found(value: Value | None) -> Value:
    """What a page or a form is about. Raises NotFound if there is none."""
    if value is None:
        raise NotFound
    return value


def _left_out(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    try:
        return validate(value)
    except (ValidationError, NotFound):
        return None


#: The id of a row that a form names. Raises NotFound.
RowId = Annotated[int, PlainValidator(lambda text: or_not_found(row_id(text)))]
#: A value of an address, such as an id or one of a fixed list; None for anything else.
Lenient = Annotated[Value | None, WrapValidator(_left_out)]


def text(most: int) -> AfterValidator:
    """Of a field that is searched by or kept: at most so many characters. No row holds a NUL, and PostgreSQL takes
    none."""
    return AfterValidator(lambda value: value.replace("\0", "").strip()[:most])


class Fields(BaseModel):
    """The query of an address, or the fields of a form."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    @classmethod
    def read(cls, fields: Mapping[str, str]) -> Self:
        return cls.model_validate(dict(fields))
