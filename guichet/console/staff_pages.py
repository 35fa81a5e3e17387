"""Every page of the back office, by group."""

from typing import Final

from guichet.console.admin import audit_log_page, merchants, modes_page, operations, people
from guichet.console.sections import StaffPage

STAFF_PAGES: Final[tuple[StaffPage, ...]] = (
    *merchants.PAGES,
    *modes_page.PAGES,
    *operations.PAGES,
    *people.PAGES,
    *audit_log_page.PAGES,
)
