"""The back office's first page and everything about merchants."""

from typing import Final

from guichet.console.admin.merchants import (
    anonymise_page,
    developers_page,
    documents_page,
    file_page,
    list_page,
    notes_page,
)
from guichet.console.sections import StaffPage

PAGES: Final[tuple[StaffPage, ...]] = (
    *list_page.PAGES,
    *file_page.PAGES,
    *notes_page.PAGES,
    *documents_page.PAGES,
    *developers_page.PAGES,
    *anonymise_page.PAGES,
)
