"""People in the back office: the staff, and the users of merchants."""

from typing import Final

from guichet.console.admin.people import person_page, staff_page, users_page
from guichet.console.sections import StaffPage

PAGES: Final[tuple[StaffPage, ...]] = (*staff_page.PAGES, *users_page.PAGES, *person_page.PAGES)
