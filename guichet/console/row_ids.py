"""Ids of rows in the addresses of pages: `/payments/{payment:row}`."""

from typing import Final

from starlette.convertors import Convertor, register_url_convertor

#: As `{name:row}` in a path.
_NAME: Final = "row"


class _RowIds(Convertor[int]):
    """Ids are 64-bit integers in both databases. A number with more digits is none, so the address does not exist; a
    number with thousands would not even be an int (`sys.set_int_max_str_digits`)."""

    regex = "[0-9]{1,18}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


def register_row_ids() -> None:
    """Before the first route is made: Starlette looks the names up there."""
    register_url_convertor(_NAME, _RowIds())
