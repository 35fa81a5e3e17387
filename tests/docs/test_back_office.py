"""docs/admin-guide.md, "The back office": every page of it, and the rights that it needs."""

import inspect
import re
from importlib import import_module
from typing import Any, Final

from guichet.console.page_tables import STAFF_PAGES
from guichet.console.sections import StaffPage
from guichet.domain.approvals import RIGHTS
from guichet.domain.roles import STAFF_RIGHTS
from guichet.domain.staff_jobs import RIGHT_OF
from tests.docs.tables import cells

PAGE: Final = "docs/admin-guide.md"


def test_every_page_of_the_back_office_is_in_the_guide_with_its_rights() -> None:
    written = cells(PAGE, "back office")
    pages = {f"`/admin{re.sub(':[a-z]+', '', page.path)}`": page for page in STAFF_PAGES}
    assert written.keys() == pages.keys()
    for path, (does, sees, changes) in written.items():
        assert does, path
        assert sees == f"`{pages[path].right}`", path
        assert set(re.findall("`([^`]+)`", changes)) == _to_change(pages[path]), path


def _to_change(page: StaffPage) -> set[str]:
    """The rights that what is posted to the page may need, as its function asks for them."""
    if page.change is None:
        return set()
    module: Any = import_module(f"guichet.console.admin.{page.module}")
    source = inspect.getsource(getattr(module, page.change))
    found: set[str] = {right for right in STAFF_RIGHTS if f'"{right}"' in source}
    if "RIGHTS[approval.act]" in source:
        found |= set(RIGHTS.values())
    if "RIGHT_OF[kind]" in source:
        found |= {RIGHT_OF[kind] for kind in module._TASKS}
    found |= {right for kind, right in RIGHT_OF.items() if f'RIGHT_OF["{kind}"]' in source}
    assert found, page.path
    return found
