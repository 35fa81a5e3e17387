"""The tables of the console's pages name functions by their names: each is there, and takes what its table gives it."""

from importlib import import_module
from inspect import iscoroutinefunction, signature
from typing import Final, get_type_hints

import pytest
from starlette.responses import Response

from guichet.console.page_request import ConsoleRequest, MerchantRequest, StaffRequest
from guichet.console.page_tables import (
    DEMONSTRATION_PAGES,
    DEVELOPMENT_PAGES,
    MERCHANT_PAGES,
    PERSON_PAGES,
    STAFF_PAGES,
)

TABLES: Final = (
    ("guichet.console", MERCHANT_PAGES, MerchantRequest),
    ("guichet.console.admin", STAFF_PAGES, StaffRequest),
    ("guichet.console", (*PERSON_PAGES, *DEVELOPMENT_PAGES, *DEMONSTRATION_PAGES), ConsoleRequest),
)


@pytest.mark.parametrize(
    ("module", "name", "kind"),
    [
        pytest.param(f"{package}.{page.module}", name, kind, id=f"{page.module}.{name}")
        for package, pages, kind in TABLES
        for page in pages
        for name in (page.show, page.change)
        if name
    ],
)
def test_each_name_is_a_function_for_requests_of_its_table(module: str, name: str, kind: type[ConsoleRequest]) -> None:
    function = getattr(import_module(module), name)
    first, *others = signature(function).parameters.values()
    assert iscoroutinefunction(function)
    assert issubclass(kind, get_type_hints(function)[first.name])
    assert issubclass(get_type_hints(function)["return"], Response)
    assert all(other.default is not other.empty for other in others)
