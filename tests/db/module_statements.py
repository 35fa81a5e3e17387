"""The statements that are constants of Guichet's modules."""

import importlib
import pkgutil
from collections.abc import Iterator

from sqlalchemy import Delete, Executable, Insert, Select, Update

import guichet


def module_statements() -> Iterator[tuple[str, Executable]]:
    """Each with the name of its constant; also those of a dict, and of what `db/engine.py` wraps."""
    for module in pkgutil.walk_packages(guichet.__path__, "guichet."):
        if "migrations" not in module.name and not module.name.endswith("__main__"):
            for name, value in vars(importlib.import_module(module.name)).items():
                for each in value.values() if isinstance(value, dict) else [value]:
                    statement = each if isinstance(each, Executable) else getattr(each, "statement", None)
                    if isinstance(statement, Select | Insert | Update | Delete):
                        yield f"{module.name}.{name}", statement
