"""The tables of the console's pages name functions by their names: each is there, and takes what its table gives it."""

import re
from collections.abc import Sequence
from importlib import import_module
from inspect import iscoroutinefunction, signature
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

import pytest
from starlette.responses import Response

import guichet.console
from guichet.console.page_request import ConsoleRequest, MerchantRequest, StaffRequest
from guichet.console.page_tables import (
    DEMONSTRATION_PAGES,
    DEVELOPMENT_PAGES,
    MERCHANT_PAGES,
    PERSON_PAGES,
    STAFF_PAGES,
    PersonPage,
)
from guichet.console.sections import MerchantPage, StaffPage
from guichet.domain.roles import MerchantRight, StaffRight

TABLES: Final = (
    ("guichet.console", MERCHANT_PAGES, MerchantRequest),
    ("guichet.console.admin", STAFF_PAGES, StaffRequest),
    ("guichet.console", (*PERSON_PAGES, *DEVELOPMENT_PAGES, *DEMONSTRATION_PAGES), ConsoleRequest),
)


@pytest.mark.parametrize(("package", "pages", "kind"), TABLES)
def test_each_name_is_a_function_for_requests_of_its_table(
    package: str, pages: Sequence[PersonPage | MerchantPage | StaffPage], kind: type[ConsoleRequest]
) -> None:
    named = [(page.module, name) for page in pages for name in (page.show, page.change) if name]
    assert named
    faults = [each for each in named if not _takes(kind, getattr(import_module(f"{package}.{each[0]}"), each[1]))]
    assert faults == []


def test_each_right_that_a_template_asks_for_is_one() -> None:
    templates = (Path(guichet.console.__file__).parent / "templates").rglob("*.html")
    asked = {right for file in templates for right in re.findall(r'page\.may\("([^"]*)"\)', file.read_text("utf-8"))}
    assert asked
    assert asked <= {*get_args(MerchantRight), *get_args(StaffRight)}


def _takes(kind: type[ConsoleRequest], function: Any) -> bool:
    first, *others = signature(function).parameters.values()
    hints = get_type_hints(function)
    return (
        iscoroutinefunction(function)
        and issubclass(kind, hints[first.name])
        and issubclass(hints["return"], Response)
        and all(other.default is not other.empty for other in others)
    )
